package cause

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Describe names the cause of a network error. The text must be the same for the same
// cause: it is compared between polls and ends in a status. The net package's own
// texts carry local ports.
func Describe(err error) string {
	var (
		dns     *net.DNSError
		errno   syscall.Errno
		timeout net.Error
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host " + dns.Name
	case errors.As(err, &dns):
		return "the name " + dns.Name + " could not be resolved"
	case errors.Is(err, context.Canceled):
		return "the call was given up"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	}
	return "network error"
}

// IsUIDConflict reports whether a write was refused because the object has another
// UID by now, which the API server calls invalid.
func IsUIDConflict(err error) bool {
	_, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	var status apierrors.APIStatus
	if !ok || !errors.As(err, &status) {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}
