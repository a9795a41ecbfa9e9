// SPDX-License-Identifier: Apache-2.0

// Package bench has what benchmarks of installing flows share: the flows, the
// floor that everything is compared with, and a measure of memory.
package bench
