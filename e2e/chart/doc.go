// Package chart draws figures as SVG: lines that can be told apart without colours,
// and the font, legend and encoding that other pictures share.
//
// In goes a [Chart], out come the same bytes every time.
package chart
