-------------------------------- MODULE shelf --------------------------------
\* Exported from a Viewproof specification. A small model.
\* Sets of indices reach as far as the constants say. Numbers in the text, such as sizes of quorums,
\* belong to the configuration that was exported.
EXTENDS Integers, FiniteSets

CONSTANTS
  MaxReader, MaxPlace

Reader == 0 .. MaxReader
Place == 1 .. MaxPlace
Length == 0 .. MaxPlace

Max(a, b) == IF a >= b THEN a ELSE b
Min(a, b) == IF a <= b THEN a ELSE b
Maximum(S) == CHOOSE a \in S : \A b \in S : a >= b
\* In a guard TLC follows every disjunct, also after a true one, and takes the step once for each.
\* Asked for the value of a formula it stops at the first.
Holds(p) == p = TRUE

\* What the processes hold.
VARIABLES
  mood,    \* [Reader] what a reader does
  level,   \* a level that is computed with, so that it stays a number
  length,  \* [Reader] how many places a reader's shelf has in use
  book,    \* [Reader, Place] the book at a place; 0 = none
  owned    \* [Place] is the place somebody's?

\* What was sent: a fact, once sent, that any receiver may act on.
VARIABLES
  lent   \* [Reader, Place] a note that a book was lent

\* History that only invariants and bounds read.
VARIABLES
  steps   \* how often a book was put

state_vars == <<mood, level, length, book, owned>>
message_vars == <<lent>>
history_vars == <<steps>>
vars == <<state_vars, message_vars, history_vars>>

TypeOK ==
  /\ mood \in [Reader -> {"idle", "walking", "reading"}]
  /\ level \in 0 .. 1
  /\ length \in [Reader -> 0 .. MaxPlace]
  /\ book \in [Reader \X Place -> 0 .. MaxPlace + 1]
  /\ owned \in [Place -> BOOLEAN]
  /\ lent \in [Reader \X Place -> BOOLEAN]
  /\ steps \in 0 .. MaxPlace

Init ==
  /\ mood = [r \in Reader |-> "idle"]
  /\ level = 0
  /\ length = [r \in Reader |-> 0]
  /\ book = [r \in Reader, p \in Place |-> 0]
  /\ owned = [p \in Place |-> TRUE]
  /\ lent = [r \in Reader, p \in Place |-> FALSE]
  /\ steps = 0

\* A reader puts a book behind the others.
\*
\* The second paragraph of a docstring is part of the comment.
\* (tests/spec/tla/shelf.py)
put(r, b) ==
  LET p == length[r] + 1
      before == IF p = 1 THEN 0 ELSE book[r, p - 1]
  IN
  /\ mood[r] /= "reading"
  /\ p \in Place
  /\ steps + 1 \in Place
  /\ Holds(p = 1 \/ before < b)
  /\ Holds(\E q \in Reader : q /= r \/ owned[p])
  /\ length' = [length EXCEPT ![r] = p]
  /\ book' = [book EXCEPT ![r, p] = IF before < b THEN b ELSE Max(before, 1)]
  /\ mood' = [mood EXCEPT ![r] = IF p = 1 THEN "walking" ELSE mood[r]]
  /\ steps' = steps + 1
  /\ UNCHANGED <<level, owned, message_vars>>

\* A reader takes everything above n away, and lends it to the readers who have less.
\* (tests/spec/tla/shelf.py)
clear(r, n) ==
  /\ n < length[r]
  /\ ~(mood[r] = "idle" /\ n = 0)
  /\ book' = [r2 \in Reader, p \in Place |->
       IF r2 = r /\ p \in n + 1 .. length[r] THEN 0 ELSE book[r2, p]]
  /\ lent' = [q \in Reader, p \in Place |->
       IF p \in n + 1 .. length[r] THEN lent[q, p] \/ length[q] < Min(n, length[r]) ELSE lent[q, p]]
  /\ length' = [length EXCEPT ![r] = n]
  /\ mood' = [mood EXCEPT ![r] = "idle"]
  /\ UNCHANGED <<level, owned, history_vars>>

\* Two updates of one variable: the place and the one after it change hands.
\* (tests/spec/tla/shelf.py)
swap(p) ==
  /\ p + 1 <= 2
  /\ owned[p] => ~owned[p + 1]
  /\ owned' = [owned EXCEPT ![p] = owned[p + 1], ![p + 1] = owned[p]]
  /\ UNCHANGED <<mood, level, length, book, message_vars, history_vars>>

\* A range and a single cell of one variable; every cell of another.
\* (tests/spec/tla/shelf.py)
lend(p) ==
  /\ ~lent[0, p]
  /\ Cardinality({i \in Place : owned[i]}) >= 1
  /\ lent' = [r \in Reader, i \in Place |->
       IF r = 1 /\ i \in p .. 2 THEN TRUE ELSE IF r = 0 /\ i = p THEN TRUE ELSE lent[r, i]]
  /\ owned' = [i \in Place |-> i /= p]
  /\ UNCHANGED <<mood, level, length, book, history_vars>>

\* An action without parameters.
\* (tests/spec/tla/shelf.py)
raise_level ==
  /\ level < 1
  /\ level' = (level + 1) % 2
  /\ UNCHANGED <<mood, length, book, owned, message_vars, history_vars>>

\* Nothing changes.
\* (tests/spec/tla/shelf.py)
rest(r) ==
  /\ mood[r] = "idle"
  /\ UNCHANGED vars

Next ==
  \/ \E r \in Reader, b \in Place : put(r, b)
  \/ \E r \in Reader, n \in Length : clear(r, n)
  \/ \E p \in Place : swap(p)
  \/ \E p \in Place : lend(p)
  \/ raise_level
  \/ \E r \in Reader : rest(r)

Spec == Init /\ [][Next]_vars

\* ascending:
\* Books stand in order.
S1_ascending ==
  \A r \in Reader : \A p \in 2 .. length[r] : book[r, p - 1] <= book[r, p]

\* a title that is no word:
\* No book is larger than the number of the last place.
S2 ==
  \A r \in Reader : Maximum({-1} \cup {book[r, p] : p \in 1 .. length[r]}) <= (2 - (level % 2)) + 1

\* steps_rise:
\* Steps never fall, and a reader's mood is never reading.
S3_steps_rise ==
  steps <= steps' /\ (\A r \in Reader : mood'[r] /= "reading" /\ length'[r] <= 2)
Always_S3 == [][S3_steps_rise]_vars

\* Witnesses: states that must be reachable, or the invariant of that name would say nothing.
\* To see one, check its Never_ operator as an invariant: the counterexample ends in such a state.

\* a shelf is full:
\* A shelf has no place left.
Witness_S1 ==
  \E r \in Reader : length[r] = 2
Never_S1 == ~Witness_S1

==============================================================================
