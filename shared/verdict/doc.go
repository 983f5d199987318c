// Package verdict has the answer to whether something may be done to a member (Verdict), and
// to whether something is to be done to it (Reason).
//
// In go reasons; out comes yes or no, and why. What was not judged is not done. It is pure.
package verdict
