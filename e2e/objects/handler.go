package objects

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// NewHandler has an informer show each newest version of an object, and the last one, after which
// it is no longer there.
func NewHandler(see func(object *unstructured.Unstructured, there bool)) cache.ResourceEventHandler {
	show := func(object any, there bool) {
		if deleted, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = deleted.Obj
		}
		if o, ok := object.(*unstructured.Unstructured); ok {
			see(o, there)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { show(o, true) },
		UpdateFunc: func(_, o any) { show(o, true) },
		DeleteFunc: func(o any) { show(o, false) },
	}
}
