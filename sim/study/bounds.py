"""Operational bounds: what throughput and response cannot exceed, from a light load's demands.

Models: asymptotic bounds of a queueing network (Denning and Buzen, "The Operational Analysis of
 Queueing Network Models", ACM Computing Surveys 10, 1978, section 5). With N customers that think
 for Z, D_k the time that a transaction keeps resource k busy, D their sum:

    utilisation law     U_k = X D_k, so that D_k = U_k / X
    closed              X <= min(N / (D + Z), 1 / D_max)    R >= max(D, N D_max - Z)
    open                X <= min(rate, 1 / D_max)           R >= D

 Demands are measured where the load is lightest. One customer waits for nobody: of one, D is what
 is left of N / X after thinking, and holds delays that keep nothing busy. Of more, D is at least
 what CPU and busiest disk say. Where the throughput at the lightest load is more than its
 customers can bring, the rest comes from others, such as a stream of mail beside a mailing, and is
 added to the bound.
By hand: a disk 22 % busy with 40 transactions a second: D = 5.5 ms, and 1 / D = 182 a second; one
 customer who thinks 20 ms brings 1 / 25.5 ms = 39, so the bounds cross at 182 / 39 = 4.6 customers.
Counterpart: none of Linux; %util of iostat, %user + %system.
Invariants: the bounds are no model: they hold whatever the order of service. They suppose that a
 transaction demands the same at every load. Where one demands less, because a commit serves
 several or the elevator shortens ways, and where a device serves several at a time and is "busy"
 with one, a curve may cross its bound: that tells just this.
Left out: balanced bounds; several classes of transactions.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sim.observation import MeasureSpec, Quantile
from sim.scenario.spec import Scenario
from sim.study.metrics import own_families, own_figures, quantiles_of
from sim.study.summary import Summary
from sim.toml.lines import split_key
from sim.units import NS_PER_S, Value
from sim.user.transactions import BY_RATE

CLOSED = "closed"
OPEN = "open"
_RATE = "/s"
_PER_S = {"ms": 1000.0, "us": 1e6}  # units of response times


@dataclass(frozen=True, kw_only=True)
class Load:
    """A parameter that is a load: a population that waits for its answers, or a rate that does not.

    `throughput` and `responses` are the figures that it drives, these with how many of their unit
    make a second.
    """

    kind: str
    think_s: float
    throughput: str
    responses: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Bounds of one variant, as measured at its lightest load; `busiest` is the fullest there."""

    load: Load
    lightest: float
    demand_s: float  # D: of all resources
    demand_s_max: float  # of the fullest; of several CPUs that of each
    busiest: str
    beside_per_s: float = 0.0  # of the throughput, what no customer brings (closed)

    @property
    def saturation_per_s(self) -> float:
        """The throughput at which the first resource is full."""
        return 1 / self.demand_s_max

    @property
    def crossing(self) -> float:
        """The load at which the two bounds of throughput meet."""
        if self.load.kind == OPEN:
            return self.saturation_per_s
        left = max(self.saturation_per_s - self.beside_per_s, 0.0)
        return left * (self.demand_s + self.load.think_s)

    def throughput_max(self, load: float) -> float:
        """Return what the throughput cannot exceed."""
        if self.load.kind == OPEN:
            return min(load, self.saturation_per_s)
        own = load / (self.demand_s + self.load.think_s)
        return min(own + self.beside_per_s, self.saturation_per_s)

    def response_s_min(self, load: float) -> float:
        """Return what the mean response time cannot fall below."""
        if self.load.kind == OPEN:
            return self.demand_s
        return max(self.demand_s, load * self.demand_s_max - self.load.think_s)


def load_of(scenario: Scenario, path: str) -> Load | None:
    """Return what load a parameter is; None if it is none."""
    found = throughput_of(scenario)
    values = _siblings(scenario, path)
    if found is None or values.get("load_scale", 1.0) != 1.0:
        return None
    kind = _kind(split_key(path)[-1], values)
    if kind is None:
        return None
    think_ns = values.get("think_time") or 0
    assert isinstance(think_ns, int)
    think_s = think_ns / NS_PER_S if kind == CLOSED else 0.0
    return Load(kind=kind, think_s=think_s, throughput=found[0], responses=found[1])


def _kind(name: str, values: Mapping[str, Value | None]) -> str | None:
    """Return whether a parameter of a process is a population or a rate, given all of these."""
    arrivals = values.get("arrivals", "")
    if arrivals == BY_RATE:
        arrivals = OPEN if values.get("rate") else CLOSED
    if name == "concurrency":
        return CLOSED if arrivals in (CLOSED, "") else None
    if name == "count":
        return CLOSED if not arrivals and "concurrency" not in values else None
    if name == "rate":
        return OPEN if arrivals in (OPEN, "") else None
    return None


def response_of(measure: MeasureSpec) -> str | None:
    """Return the figure that says how long the programs take: a quantile, else a time."""
    times = (one.name for one in own_figures(measure) if one.unit in ("s", *_PER_S))
    return next(iter((*quantiles_of(measure), *times)), None)


def throughput_of(scenario: Scenario) -> tuple[str, dict[str, float]] | None:
    """Return the first throughput that a program reports, and the response times beside it."""
    for family in own_families(scenario.measure):
        rates = [one.name for one in family.metrics if one.unit == _RATE]
        if rates:
            times = {
                one.name: _PER_S[one.unit]
                for one in family.metrics
                if one.unit in _PER_S and not isinstance(one.compute, Quantile)
            }
            return rates[0], times
    return None


def _siblings(scenario: Scenario, path: str) -> dict[str, Value | None]:
    """Return the values of a process that a path is in, by the last part of theirs."""
    parts = split_key(path)
    if len(parts) != 3 or parts[0] != "process":
        return {}
    found = {}
    for one in scenario.parameters:
        own = split_key(one.path)
        if own[:2] == parts[:2] and len(own) == 3:
            found[own[2]] = one.value
    return found


def bounds_of(
    load: Load, lightest: float, metrics: Mapping[str, Summary], cpus: int
) -> Bounds | None:
    """Return the bounds that figures of the lightest load tell; None if they do not."""
    rate = metrics.get(load.throughput)
    busy = _busy(metrics)
    if rate is None or rate.mean <= 0 or not any(busy.values()):
        return None
    demands = {name: share / rate.mean for name, share in busy.items()}
    busiest = max(demands, key=demands.__getitem__)
    disks = [demand for name, demand in demands.items() if name != "CPU"]
    demand_s = cpus * demands.get("CPU", 0.0) + max(disks, default=0.0)
    beside_per_s = 0.0
    if load.kind == CLOSED:
        if lightest == 1:
            demand_s = max(demand_s, 1 / rate.mean - load.think_s)
        beside_per_s = max(rate.mean - lightest / (demand_s + load.think_s), 0.0)
    return Bounds(
        load=load,
        lightest=lightest,
        demand_s=demand_s,
        demand_s_max=demands[busiest],
        busiest=busiest,
        beside_per_s=beside_per_s,
    )


def _busy(metrics: Mapping[str, Summary]) -> dict[str, float]:
    """Return how busy CPUs and disks are, 0 to 1."""
    found = {}
    states = [metrics[name].mean for name in ("cpu.user_pct", "cpu.system_pct") if name in metrics]
    if len(states) == 2:
        found["CPU"] = sum(states) / 100
    elif "cpu.busy_pct" in metrics:
        found["CPU"] = metrics["cpu.busy_pct"].mean / 100
    for name, summary in metrics.items():
        if name.startswith("disk.") and name.endswith(".util_pct"):
            found[name.removesuffix(".util_pct").replace(".", " ", 1)] = summary.mean / 100
    return found
