"""Follow a server as it runs: a twin that is kept current, and an alarm when the two part.

Models: the colleague who has the server's figures on one screen and the twin's on the other, and
speaks up when they are no longer the same.
Linux counterpart: none; the counters are those of /proc (calibration/record.py).
Invariants: the follower has no clock: all times are the server's own (/proc/uptime), so that a
series of yesterday or of a simulation gives what a live server would. Nothing is written on the
server. Whatever is read costs the server the reading of ten small files, and a line of each task.
Left out: whose a request is: counters do not tell.

Readings. Each is a difference of two samples of /proc, by iostat's own arithmetic. They come twice
an interval, so that a change is in five readings within 30 s at the usual interval of 10 s. Who
runs or sleeps uninterruptibly is counted at more moments, if the source has them: each second on
this host. By hand: half a task on average scatters by 0.7, so that a minute's 12 readings know it
to 0.2 and 60 counts to 0.09; what goes with the disks' queues is known better (look/tasks.py). A
load average looks every 5 s and no more: a minute of it is off by 0.14 (its weights are e^-1/12
apart), 30 % of such a load, and so no twin can be near it.

Demand and service. The twin of the last minute is the twin before, with its values corrected by
what the two showed. Rates follow at once, for what a device is asked for is counted directly:
    rate' = rate X / X'              X requests a second of the server, X' those of the twin
    customers' = customers X R / X' R'                     of a full device, by Little's law
Writes that nobody waits for are let go by the flusher when it likes. Beside them the flushes tell
what was waited for: F and F' a second, as the file system of both makes them. With a writes for
each flush (from the minute that the twin was drawn from) the others are X - a F, so that
    rate' = rate F / F'   of who waits,     let go' = let go (X - a F) / (X' - a F').
By hand: a database at 50 commits a second, of two writes and a flush (a = 2), and 80 pages a second
let go: X = 180. With twice the commits and pages as before X = 280, and F / F' = 2: who waits is
doubled, and (280 - 200) / (180 - 100) = 1. By X / X' both had been taken 1.56 times.
The twin's own a' may differ. An error of what is let go becomes (a' - a) F / (X - a F) of itself in
a step; what is less than a quarter of the writes is not told so. But of what comes many at a time
nothing is merged: there the twin knows its own B = let go, however little that is, and with it
a' = (X' - B) / F', so that let go' = X - a' F. Flushes do not tell where so many fsyncs share a
commit that a flush is of more of them at another load, or where they are few. Of a log that one
writes for all, three transactions for each flush keep it busy for 0.98 of the time: more of them
would make hardly more flushes, and the rate stays.
Service times S are not counted: R = S / (1 - U) has the waiting in it, and U follows from S. So
    d ln R / d ln S = 1 / (1 - U),        S' = S q^(1 - U),        q = R / R'
is Newton's step. Both R and R' have chance in them: with x = ln q, and each known to e in a minute,
x^2 / (x^2 + 2 e^2) of x is taken for no chance, and corrected by. So what is far off is done at
once. The price is that a value that does not change scatters more: of normal x the mean square of
what is corrected by is 0.47 of x's, and S' goes on with a variance of 1.3 e^2, where half of every
step would leave 0.7 e^2. By hand: U = 40 %, the server's reads take 3.0 ms and the twin's 2.0: x =
0.41. Known to 5 %, 0.97 of it is no chance: S' = 1.27 S. The twin was 31 % busy, and is 39 %: R' =
1.27 (1 - 0.31) / (1 - 0.39) = 1.43 of what it was: 2.9 ms.
How busy a device is tells S as well. Of one that serves one request at a time U = X S, so that
d ln U / d ln S = 1. Both are corrected together, S' = S (q U / U')^g with g = (1 - U) / (2 - U), so
that neither is far off where requests come more together on one side. Flushes have a part of U,
which is not taken off. The same is done of a device that serves side by side. There R hardly waits
and U is about 1 - exp(-X S): while it is seldom busy, that is Newton's step as well; at 50 % it
leaves 0.44 of what is off, and near 100 %, where U says nothing, nearly all. How many it serves,
and so how near waiting is, U does not tell, so that a longer step is not safe. Where the kernel
counts jiffies (Linux 5.0 to 6.9, or requests in step with them), U takes no part in this.
By hand: a write takes as long in both, but the server is busy for 2.9 % of the time and the twin
for 2.4: S' = 1.2^0.49 S = 1.1 S. Then a write takes 10 % too long and U is 10 % too low, in place
of none and 20 %.
A flush that waits for nobody has a time of its own: S' = S R_f / R_f'. On a fast device the way
there is a good part of R_f, and the step does less.
A disk that answers writes from its cache is busy with its flushes, each for the time S of what it
writes (its `write`). So U = F S, and a flush takes R_f = S: S' = S (U / U' R_f / R_f')^0.5, so that
neither is far off; if the disk has reads, they have a part of U. Where a flusher writes as well, a
flush has a time of its own (`flush`), which f_await tells: S' = S R_f / R_f'. A write that flushes
is accounted when its flush is done. So the time in which a write is answered (`cache_write`, or
`write` where `flush` has the rest) is told by what X writes a second of R have beside F flushes,
    R_w = R - F R_f / X,        S' = S R_w / R_w'
for many that come together wait for each other. A part of R_w is for flushes under way, so that
such a step does less.
By hand: 75 writes of 4.9 ms with 20 flushes of 12 ms have R_w = 1.7 ms. The twin has 70 of 5.9 ms
and the same flushes, R_w' = 2.5: S' = 0.69 S.

Alarm. Every figure is followed by its logarithm: a device's reads, writes and flushes a second, and
the CPUs' busy time, against the demand that the twin has; response times and %util against what the
twin says of that demand. Each has a cumulative sum for either side (Page, Biometrika 41, 1954):
    C = max(0, C + z - k),    alarm if C > h           z: so many standard deviations off; k = 1
A sum notices such a shift sooner than a limit for single readings with as few false alarms
(Moustakides, Annals of Statistics 14, 1986). Since when is told by the likeliest moment (Hinkley,
Biometrika 57, 1970). Neither mean nor deviation is known of a server just met. So the sum starts
itself (Hawkins, The Statistician 36, 1987): a reading is compared with those before it by Student's
t, and that is brought to a normal deviate (Wallace, Annals of Mathematical Statistics 30, 1959). z
is cut at 4: one reading, however odd, is no alarm.
False alarms: a sum's run length until a false alarm is (exp(2 k b) - 2 k b - 1) / (2 k k) readings,
b = h + 1.166 (Siegmund, Sequential Analysis, 1985), for independent normal readings; h is such that
all sums together have one a week. By hand: a reading every 5 s is 121,000 a week; the thirteen
figures of two devices and the CPUs have 26 sums; exp(2 b) = 2 x 26 x 121,000 gives b = 7.8 and
h = 6.7. An alarm needs three readings of 4, 15 s. A server's readings hang together, so that more
may come than one a week; but what was noticed must also matter: it is told only if the shift is
twice what the column is trusted to (calibration/twin/verdict.py), as a twin is judged. Smaller ones
are learned.
By hand: 120 reads a second, in 5 s 600 of them, scatter by 4 % or by what the minute before showed,
say 8 %. Twice as many are 0.69 / 0.08 = 8.7 deviations, z = 4 after t with ten readings: alarm
after the third reading, 10 to 15 s after the change. At 5 a second they scatter by 20 % at least: z
= 2.7, four readings, 20 to 25 s. Below 3 a second 30 s are not enough.
"""
