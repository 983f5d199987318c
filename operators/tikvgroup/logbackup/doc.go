// Package logbackup has running TiKV stores write out what their log backups hold in memory,
// before they are stopped (KV-17): a store that starts again would have to send it once more,
// and the backup's checkpoint would stand still meanwhile.
//
// In goes an order for a pod that is to stop; out come how many log backups were written out,
// and which pods' stores have done what they can.
package logbackup
