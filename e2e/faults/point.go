package faults

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Write is one write request of an operator. The same write of another run has
// the same name.
type Write struct {
	// Operator that sends it.
	Operator string
	// Verb as RBAC names it: create, update, patch or delete.
	Verb string
	// Resource, with the subresource after a dot: instances.status.
	Resource string
	// Name of the object, without the hash of its content: see named.
	Name string
	// Nth of all that are equal to it so far, from 1.
	Nth int
}

// String renders the write as it is named in a fault.
func (w Write) String() string {
	return strings.Join([]string{w.Operator, w.Verb, w.Resource, w.Name, strconv.Itoa(w.Nth)}, "/")
}

// Event is one event of a watch of an operator.
type Event struct {
	// Operator that watches.
	Operator string
	// Resource that it watches.
	Resource string
	// Name of the object, without the hash of its content: see named.
	Name string
	// Nth event of this object that reaches the operator, from 1; what it knows
	// from a list does not count.
	Nth int
}

// String renders the event as it is named in a fault.
func (e Event) String() string {
	return strings.Join([]string{e.Operator, e.Resource, e.Name, strconv.Itoa(e.Nth)}, "/")
}

// hashed is the end of a name that is a hash.
var hashed = regexp.MustCompile(`-[0-9a-f]{8,}$`)

// normalizeName is the name of an object in a point. What is named after its content has
// the namespace in its hash, which is another one in every run; how many were
// met before tells revisions apart as well.
func normalizeName(resource, name string) string {
	if resource == "controllerrevisions" || resource == "configmaps" {
		return hashed.ReplaceAllString(name, "-~")
	}
	return name
}

func parseWrite(text string) (Write, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 5 {
		return Write{}, fmt.Errorf("read write %q: want operator/verb/resource/name/n", text)
	}
	nth, err := parseNth(parts[4])
	return Write{Operator: parts[0], Verb: parts[1], Resource: parts[2], Name: parts[3], Nth: nth}, err
}

func parseEvent(text string) (Event, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 4 {
		return Event{}, fmt.Errorf("read event %q: want operator/resource/name/n", text)
	}
	nth, err := parseNth(parts[3])
	return Event{Operator: parts[0], Resource: parts[1], Name: parts[2], Nth: nth}, err
}

func parseNth(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("read %q: want a number from 1", text)
	}
	return n, nil
}
