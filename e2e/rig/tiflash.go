package rig

import (
	"context"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// startTiFlash starts the process of a TiFlash, which is a store.
func (a *actor) startTiFlash(ctx context.Context, l launch) (failed, err error) {
	status, err := openStatusPort(ctx, a.door(l.pod), v1alpha1.PortTiFlashProxyState, tiflashPort(l.db, l.claim))
	if err != nil {
		return nil, err
	}
	if failed = l.db.StartStore(Store{Claim: l.claim, Address: containerArguments(l.pod)["--flash.proxy.engine-addr"], Version: imageVersion(l.pod), TiFlash: true}); failed != nil {
		status.close()
		return failed, nil
	}
	l.process.ip = status.ip
	l.process.stop = func() error { status.close(); l.db.StopStore(l.claim); return nil }
	return nil, nil
}

// tiflashPort is what TiFlash answers about the store on a claim.
func tiflashPort(db *Database, claim types.UID) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /tiflash/store-status", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, db.StoreStatus(claim)) }) // the reader is gone if it fails
	return mux
}
