// Package apply writes objects by server-side apply, and sends nothing when nothing would
// change.
//
// In goes the object that is wanted, and the live one as it was last seen. Out comes whether it
// was created, updated or left unchanged. What is wanted is hashed into an annotation: a write
// goes out when the hash differs, or when the live object no longer holds what was applied.
// Fields that we never set are left alone.
package apply
