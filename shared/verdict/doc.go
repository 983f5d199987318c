// Package verdict has the answer to whether something may be done to a member: yes, or no and
// why. What was not judged is not done.
package verdict
