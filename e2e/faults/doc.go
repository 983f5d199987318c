// Package faults does harm to the connection between an operator and the
// kube-apiserver, exactly where it is told to.
//
// It sits in the transport of the operator's rest.Config, not in a proxy of its
// own: there it knows which operator asks what without guessing, sees a write
// before the server does and its reply before the operator does, and costs
// next to nothing, so that thousands of attempts can be made.
//
// A fault strikes at a point, and a point is named by what happens there, not by
// when: the second time that the pdgroup operator patches the status of Instance
// basic-pd-0, the third event of pod basic-pd-0 that reaches the instance
// operator. Operators work at several objects at once, so the 17th write of one
// run is not the 17th of the next; the second patch of one object is. A sweep
// takes the points from the record of an undisturbed run; in a run that does not
// come by a point, because two status writes became one, the fault does not
// strike, and the attempt does not count.
//
//	none                                               nothing, but the record is kept
//	crash:pdgroup/patch/instances.status/basic-pd-0/2  the operator dies when the write was served, and starts again
//	crash-all:…                                        all operators die with it
//	drop:instance/pods/basic-pd-0/3                    the operator never gets this event
//	stale:instance/pods/basic-pd-0/3/2s                from this event on, its watch of pods stands still for 2 s
//	409: 429: 500: 504: reset:…                        the server never sees the write; this is the answer
//	lost:…                                             the write is served, but its reply is lost
//	kill:…  delete:…                                   the write is served, and before its reply is read a user does something:
//	                                                   a user deletes a pod, or everything
//
// Writes of Events of the API are left alone: no operator reads them. What a watch
// sends as its initial list is no event.
package faults
