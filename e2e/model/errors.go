package model

import (
	"fmt"
	"net/http"
)

// Error is a refusal as PD words it, with the HTTP status that PD answers it with.
type Error struct {
	// Code is PD's error code, for example PD:core:ErrStoreNotFound; empty for plain texts.
	Code string
	// Text is the message without its code.
	Text string
	// Status is the HTTP status.
	Status int
}

// Error renders the message as PD does: the code in brackets, then the text.
func (e *Error) Error() string {
	if e.Code == "" {
		return e.Text
	}
	return "[" + e.Code + "]" + e.Text
}

// ErrNotBootstrapped is the answer to everything about stores and regions
// before the first TiKV store has registered.
var ErrNotBootstrapped = &Error{
	Code:   "PD:cluster:ErrNotBootstrapped",
	Text:   "TiKV cluster not bootstrapped, please start TiKV first",
	Status: http.StatusInternalServerError,
}

// ErrAlreadyBootstrapped refuses a second Bootstrap.
var ErrAlreadyBootstrapped = &Error{Text: "cluster is already bootstrapped", Status: http.StatusInternalServerError}

// ErrSchedulerNotFound is the answer about a scheduler that does not exist.
var ErrSchedulerNotFound = &Error{
	Code: "PD:scheduler:ErrSchedulerNotFound", Text: "scheduler not found", Status: http.StatusNotFound,
}

func storeNotFound(id uint64) *Error {
	return &Error{Code: "PD:core:ErrStoreNotFound", Text: fmt.Sprintf("store %d not found", id), Status: http.StatusNotFound}
}

func storeRemoved(id uint64) *Error {
	return &Error{Code: "PD:core:ErrStoreRemoved", Text: fmt.Sprintf("store %d has been removed", id), Status: http.StatusGone}
}

func storeDestroyed(id uint64) *Error {
	return &Error{
		Code: "PD:core:ErrStoreDestroyed", Text: fmt.Sprintf("store %d has been physically destroyed", id),
		Status: http.StatusInternalServerError,
	}
}

func storesNotEnough(id uint64, up, need int) *Error {
	return &Error{
		Code:   "PD:core:ErrStoresNotEnough",
		Text:   fmt.Sprintf("can not remove store %d since the number of up stores would be %d while need %d", id, up, need),
		Status: http.StatusBadRequest,
	}
}

func noStoreForLeader(id uint64) *Error {
	return &Error{
		Code:   "PD:core:ErrNoStoreForRegionLeader",
		Text:   fmt.Sprintf("can not remove store %d since there are no extra up store to store the leader", id),
		Status: http.StatusBadRequest,
	}
}

func invalidRecovery(format string, args ...any) *Error {
	return &Error{
		Code: "PD:unsaferecovery:ErrUnsafeRecoveryInvalidInput", Text: "invalid input " + fmt.Sprintf(format, args...),
		Status: http.StatusInternalServerError,
	}
}

func badInput(format string, args ...any) *Error {
	return &Error{Text: fmt.Sprintf(format, args...), Status: http.StatusBadRequest}
}
