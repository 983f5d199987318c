// Package apirequest tells what a request to the API server asks for, by its
// method and URL.
package apirequest

import (
	"net/http"
	"strings"
)

// The verbs that requests are told apart by, as RBAC names them.
const (
	Create = "create"
	Update = "update"
	Patch  = "patch"
	Delete = "delete"
	Get    = "get"
	List   = "list"
	Watch  = "watch"
)

// Request is what a request asks for.
type Request struct {
	// Verb of the request; empty if it is about no resource.
	Verb string
	// Resource in the plural, and Subresource if there is one.
	Resource, Subresource string
	// Namespace of the object; empty if the URL names none.
	Namespace string
	// Name of the object; empty if the URL names none.
	Name string
}

// Writes says whether the request may change something.
func (r Request) Writes() bool { return Writes(r.Verb) }

// Writes says whether requests of a verb may change something.
func Writes(verb string) bool {
	return verb == Create || verb == Update || verb == Patch || verb == Delete
}

// Parse reads a request.
func Parse(req *http.Request) Request {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	skip := 2 // api/v1
	if parts[0] == "apis" {
		skip = 3
	}
	if len(parts) <= skip {
		return Request{}
	}
	parts = parts[skip:]
	var out Request
	if parts[0] == "namespaces" && len(parts) > 2 {
		out.Namespace, parts = parts[1], parts[2:]
	}
	out.Resource = parts[0]
	if len(parts) > 1 {
		out.Name = parts[1]
	}
	if len(parts) > 2 {
		out.Subresource = parts[2]
	}
	out.Verb = findVerb(req, out.Name)
	return out
}

func findVerb(req *http.Request, name string) string {
	switch req.Method {
	case http.MethodPost:
		return Create
	case http.MethodPut:
		return Update
	case http.MethodPatch:
		return Patch
	case http.MethodDelete:
		return Delete
	}
	switch watch := req.URL.Query().Get("watch"); {
	case watch != "" && watch != "false":
		return Watch
	case name != "":
		return Get
	}
	return List
}

// RoundTripFunc is a function that sends requests, for who looks at them on their way.
type RoundTripFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
