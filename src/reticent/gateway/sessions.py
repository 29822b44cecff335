"""What is printed wherever a gateway's sessions are spoken of: what the bound assumes, and when nothing is left."""

# The chance that simulated people go on doing the same in their next session, as people do.
STAYS = 0.25
ASSUMPTION = (
    "Over sessions the bound assumes that the useful value is drawn anew, given the secret, in each of them. Where it "
    "stays the same and the provider knows that, the provider may be over the bound, and the ledger does not show it."
)
EXHAUSTED = (
    "Nothing is left to say: under the bound the policy sends nothing more of this subject, so with this policy and "
    "this ledger no further session ever begins."
)
