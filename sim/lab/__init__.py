"""Labs: a question, a server of the student's own, blanks to fill in, and marks.

Models: an exercise class. Everybody has the same question and another server.
Linux counterpart: none.
Invariants: what a student gets and what is right depend on the lab, the seed and the version alone.
Left out: keeping a secret that anybody can compute. The source is open: Read and Predict are
 practice, and the marks that count belong to Design.

Reading order: `labs` (what a lab's file says) - `sheet` (the student's file) - `marking` (what
is right, and why an answer is not) - `classroom` (seeds of a class, its list, its marks).
"""
