// Package verdict has the answer to whether something may be done to a member.
//
// In go reasons against it; out comes yes, or no and why. What was not judged is not done.
// It is pure.
package verdict
