// Package dashboard builds the dashboard for Grafana that components/grafana ships.
//
// In goes panels.yaml: what is shown, by which queries. Out comes the JSON that Grafana reads.
package dashboard
