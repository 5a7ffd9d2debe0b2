"""Labs: a question, a server of the student's own, blanks to fill in, and marks.

Models: an exercise class. Everybody has the same question and another server.
Linux counterpart: none.
Invariants: what a student gets and what is right depend on the lab, the seed and the version alone.
Left out: keeping a secret that anybody can compute. The source is open: Read and Predict are
 practice, and the marks that count belong to Design.

Reading order: `task` (a lab and its tasks) - `kinds/` (what each kind asks, and what is right) -
`labs` (what a lab's file says) - `sheet` (the student's file) - `marking` (all runs of a sheet, and
its marks) - `classroom` (seeds of a class, its list, its marks).
"""
