// Package apply writes objects by server-side apply and sends nothing when
// nothing would change. What an operator wants is hashed into an annotation:
// a write goes out when the hash differs (we want something else) or when the
// live object no longer holds what we applied (another writer changed it).
// Fields that we never set are left alone.
package apply
