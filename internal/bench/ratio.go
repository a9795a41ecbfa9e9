// SPDX-License-Identifier: Apache-2.0

package bench

import "time"

// Ratio compares two things that are done in turn, so that a machine that gets
// slower meanwhile makes both slower.
type Ratio struct{ this, other time.Duration }

// This does what is measured.
func (r *Ratio) This(f func() error) error { return timed(&r.this, f) }

// Other does what it is compared with.
func (r *Ratio) Other(f func() error) error { return timed(&r.other, f) }

// Value is how many times as long This took as Other.
func (r *Ratio) Value() float64 { return float64(r.this) / float64(r.other) }

func timed(sum *time.Duration, f func() error) error {
	start := time.Now()
	err := f()
	*sum += time.Since(start)
	return err
}
