# %% scores-lose-the-permutation
"""In line_scores you cancel P between queries and keys: (P X Wq)(P X Wk)^T becomes P S P^T, and there is no P^T
P in it to cancel. Both the rows and the columns of the scores are permuted."""
replace("softargmax(P @ S @ P.T)", "softargmax(S)")

# %% keys-not-permuted-back
"""In line_scores the queries are permuted but the keys are not: the scores of P X are P S P^T, and the P^T on
the right is what meets the P of the values."""
replace("softargmax(P @ S @ P.T)", "softargmax(P @ S)")

# %% scores-permuted-the-other-way
"""In line_scores P and P^T have changed sides: the scores of P X are (P Q)(P K)^T = P S P^T."""
replace("softargmax(P @ S @ P.T)", "softargmax(P.T @ S @ P)")

# %% scores-scaled-again price=0.25
"""In line_scores you divide S by the root of D: the scale is already in S, and it must come in once."""
replace("softargmax(P @ S @ P.T)", "softargmax(P @ S @ P.T / math.sqrt(V.shape[-1]))")

# %% scores-pulled-out-early
"""Your line_scores already has P and P^T outside of the softmax: that is what the next line says. On a permutation
the two agree; as lines for any P they do not."""
replace("softargmax(P @ S @ P.T) @ (P @ V)", "P @ softargmax(S) @ P.T @ (P @ V)")

# %% values-not-permuted
"""Your line_scores has V where P V belongs: the values of the shuffled tokens are shuffled too."""
replace("softargmax(P @ S @ P.T) @ (P @ V)", "softargmax(P @ S @ P.T) @ V")

# %% weights-cancelled-early price=0.25
"""Your line_weights is P A V already: P^T P = I is the step from this line to the next, and holds for permutations
only. Evaluate the line as it stands."""
replace("(P @ A @ P.T) @ (P @ V)", "P @ A @ V")

# %% weights-normalised-again price=0.25
"""You take a softmax of A. A holds the weights: the softmax has been taken."""
replace("(P @ A @ P.T) @ (P @ V)", "(P @ softargmax(A) @ P.T) @ (P @ V)")
replace("return P @ (A @ V)", "return P @ (softargmax(A) @ V)")

# %% ends-with-inverse-permutation price=0.25
"""Your last line applies the inverse permutation, P^T: the output of self-attention is permuted in the same
way as its input."""
replace("return P @ (A @ V)", "return P.T @ (A @ V)")

# %% ends-with-invariance price=0.25
"""Your last line is Sa(X): that would be invariance. Self-attention is equivariant, the output's rows are
permuted too."""
replace("return P @ (A @ V)", "return A @ V")

# %% ends-uncancelled price=0.25
"""Your line_output still has P^T P in it: that is the line before. On a permutation they agree; the last line is what
is left when P^T P is gone."""
replace("return P @ (A @ V)", "return P @ A @ P.T @ (P @ V)")

# %% unscaled price=0.25
"""Your line_shuffled is about another layer: the scores are not divided by sqrt(D)."""
replace("/ math.sqrt(Y.shape[-1])", "")

# %% scaled-by-length price=0.25
"""You divide the scores by the root of N, the number of tokens: the scale is the root of D, the width the dot
product runs over."""
replace("math.sqrt(Y.shape[-1])", "math.sqrt(len(Y))")

# %% softmax-over-queries
"""Your weights sum to 1 over the queries. That layer commutes with a permutation as well, but Sa normalises over the
keys: every softmax here runs over the last axis."""
replace("/ math.sqrt(Y.shape[-1]))", "/ math.sqrt(Y.shape[-1]), dim=0)")
replace("softargmax(P @ S @ P.T)", "softargmax(P @ S @ P.T, dim=0)")

# %% starts-at-the-end
"""Your line_shuffled is P Sa(X), the end of the proof. Its start is Sa(P X), computed from the shuffled tokens."""
replace("Y = P @ X  # [N, D]", "Y = X")
replace("math.sqrt(Y.shape[-1])) @ (Y @ Wv)", "math.sqrt(Y.shape[-1])) @ (Y @ Wv)\n    return P @ unshuffled")
replace("return softargmax((Y @ Wq)", "unshuffled = softargmax((Y @ Wq)")

# %% inverse-permutation-throughout
"""Your lines are about the inverse permutation: you write P^T where the theorem has P. Tokens are rows, so the
shuffled tokens are P X."""
replace("Y = P @ X", "Y = P.T @ X")
replace("softargmax(P @ S @ P.T) @ (P @ V)", "softargmax(P.T @ S @ P) @ (P.T @ V)")
replace("(P @ A @ P.T) @ (P @ V)", "(P.T @ A @ P) @ (P.T @ V)")
replace("return P @ (A @ V)", "return P.T @ (A @ V)")

# %% permutation-read-as-places price=0.5
"""You read P as a list of places, with argmax. The lines are asked for any square matrix P, so multiply by it."""
replace("Y = P @ X  # [N, D]", "Y = X[P.argmax(1)]")
replace("softargmax(P @ S @ P.T) @ (P @ V)", "softargmax(S[P.argmax(1)][:, P.argmax(1)]) @ V[P.argmax(1)]")
replace("(P @ A @ P.T) @ (P @ V)", "A[P.argmax(1)][:, P.argmax(1)] @ V[P.argmax(1)]")
replace("return P @ (A @ V)", "return (A @ V)[P.argmax(1)]")

# %% queries-and-keys-swapped
"""In line_shuffled queries and keys have changed places: the scores are X Wq (X Wk)^T, and the softmax runs over the
keys."""
replace("(Y @ Wq) @ (Y @ Wk).T", "(Y @ Wk) @ (Y @ Wq).T")

# %% values-not-projected price=0.25
"""Your line_shuffled averages the tokens themselves. The values are the tokens times Wv."""
replace("@ (Y @ Wv)", "@ Y")

# %% weights-for-outputs price=0.5
"""Some of your lines are attention matrices [N, N]: every line has to be the whole output [N, D], values
included."""
replace("softargmax(P @ S @ P.T) @ (P @ V)", "softargmax(P @ S @ P.T)")
replace("(P @ A @ P.T) @ (P @ V)", "P @ A @ P.T")

# %% weights-lose-the-transpose price=0.25
"""In line_weights a P^T is missing, or stands untransposed: the line is P A P^T P V, from left to right."""
replace("(P @ A @ P.T) @ (P @ V)", "P @ A @ P @ V")

# %% weights-softmaxed price=0.25
"""In line_weights you take a softmax. A already holds weights, of any numbers: the line has no softmax."""
replace("(P @ A @ P.T) @ (P @ V)", "softargmax(P @ A @ P.T) @ (P @ V)")

# %% scores-softmax-over-queries price=0.25
"""In line_scores your softmax runs over the queries: each *row* of P S P^T belongs to one query, so it runs over the last
axis."""
replace("softargmax(P @ S @ P.T)", "softargmax(P @ S @ P.T, dim=0)")

# %% output-permutes-the-values price=0.25
"""Your line_output is A P V: P acts on the values, before the weights. The line is P A V, the outputs reordered."""
replace("return P @ (A @ V)", "return A @ (P @ V)")
