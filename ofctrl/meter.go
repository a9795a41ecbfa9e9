// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
)

// MeterFlags say how a meter works: OFPT_METER_MOD, OpenFlow 1.5.1, 7.3.4.
type MeterFlags uint16

// The flags; one of the first two is needed.
const (
	MeterKbps  MeterFlags = 1 << 0 // rates in kb/s
	MeterPktps MeterFlags = 1 << 1 // rates in packets/s
	MeterBurst MeterFlags = 1 << 2 // Burst counts
	MeterStats MeterFlags = 1 << 3 // keep counters
)

// MeterBand is what happens over a rate.
type MeterBand struct {
	// DSCPRemark raises the drop precedence by PrecLevel; else the packet is
	// dropped.
	DSCPRemark bool
	Rate       uint32 // in the meter's unit
	Burst      uint32
	PrecLevel  uint8
}

// Meter is a meter's configuration.
type Meter struct {
	ID    uint32
	Flags MeterFlags
	Bands []MeterBand
}

// MeterCommand says what a MeterMod does.
type MeterCommand uint16

// The commands of OFPT_METER_MOD.
const (
	MeterAdd    MeterCommand = 0
	MeterModify MeterCommand = 1
	MeterDelete MeterCommand = 2 // with MeterAll: all
)

// MeterMod is OFPT_METER_MOD. It can not be in a bundle: add meters before the
// flows that use them and delete them afterwards. Deleting one also deletes the
// flows that use it. The switch does not answer it: Exec it.
type MeterMod struct {
	Command MeterCommand
	Meter
}

const (
	bandLen        = 16
	bandDrop       = 1
	bandDSCPRemark = 2
)

// AppendBinary appends the message. OpenFlow 1.5.1, 7.3.4.
func (m MeterMod) AppendBinary(b []byte) ([]byte, error) {
	start := len(b)
	b = ofp.AppendHeader(b, ofp.TypeMeterMod, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(m.Command))
	b = binary.BigEndian.AppendUint16(b, uint16(m.Flags))
	b = binary.BigEndian.AppendUint32(b, m.ID)
	for _, band := range m.Bands {
		typ, level := uint16(bandDrop), uint8(0)
		if band.DSCPRemark {
			typ, level = bandDSCPRemark, band.PrecLevel
		}
		b = binary.BigEndian.AppendUint16(b, typ)
		b = binary.BigEndian.AppendUint16(b, bandLen)
		b = binary.BigEndian.AppendUint32(b, band.Rate)
		b = binary.BigEndian.AppendUint32(b, band.Burst)
		b = append(b, level, 0, 0, 0)
	}
	return ofp.Finish(b, start)
}

// MarshalBinary returns the message.
func (m MeterMod) MarshalBinary() ([]byte, error) { return m.AppendBinary(nil) }

// Meters yields the configuration of one meter, or of all with MeterAll.
// OFPMP_METER_DESC.
func (c *Conn) Meters(ctx context.Context, id uint32) iter.Seq2[Meter, error] {
	return entries(ctx, c, statsRequest(ofp.MultipartMeterConfig, &id), parseMeter)
}

func parseMeter(b []byte) (Meter, []byte, error) {
	const fixed = 8
	if len(b) < fixed {
		return Meter{}, nil, tooShort(b)
	}
	n := int(binary.BigEndian.Uint16(b))
	if n < fixed || n > len(b) {
		return Meter{}, nil, badLength(n, b)
	}
	m := Meter{Flags: MeterFlags(binary.BigEndian.Uint16(b[2:])), ID: binary.BigEndian.Uint32(b[4:])}
	for bands := b[fixed:n]; len(bands) > 0; {
		band, err := cut16(bands, 2, bandLen)
		if err != nil {
			return Meter{}, nil, err
		}
		m.Bands = append(m.Bands, MeterBand{
			DSCPRemark: binary.BigEndian.Uint16(band) == bandDSCPRemark,
			Rate:       binary.BigEndian.Uint32(band[4:]), Burst: binary.BigEndian.Uint32(band[8:]), PrecLevel: band[12],
		})
		bands = bands[len(band):]
	}
	return m, b[n:], nil
}

// MeterCounters are the counters of one meter.
type MeterCounters struct {
	ID             uint32
	Flows          uint32 // that use it
	Packets, Bytes uint64
	Duration       time.Duration // since the meter is there
	Bands          []BucketStats // what went over the rate of each
}

// MeterStats yields the counters of one meter, or of all with MeterAll.
// OFPMP_METER_STATS.
func (c *Conn) MeterStats(ctx context.Context, id uint32) iter.Seq2[MeterCounters, error] {
	return entries(ctx, c, statsRequest(ofp.MultipartMeterStats, &id), parseMeterStats)
}

func parseMeterStats(b []byte) (MeterCounters, []byte, error) {
	const fixed, band = 40, 16
	if len(b) < fixed {
		return MeterCounters{}, nil, tooShort(b)
	}
	n := int(binary.BigEndian.Uint16(b[4:]))
	if n < fixed || n > len(b) || (n-fixed)%band != 0 {
		return MeterCounters{}, nil, badLength(n, b)
	}
	s := MeterCounters{
		ID: binary.BigEndian.Uint32(b), Flows: binary.BigEndian.Uint32(b[12:]),
		Packets: binary.BigEndian.Uint64(b[16:]), Bytes: binary.BigEndian.Uint64(b[24:]), Duration: duration(b[32:]),
	}
	for at := fixed; at < n; at += band {
		s.Bands = append(s.Bands, BucketStats{binary.BigEndian.Uint64(b[at:]), binary.BigEndian.Uint64(b[at+8:])})
	}
	return s, b[n:], nil
}

// MeterFeatures are what the datapath can do in meters.
type MeterFeatures struct {
	MaxMeters    uint32 // 0: none
	BandTypes    uint32 // bit n: type n
	Capabilities uint32 // MeterFlags
	MaxBands     uint8
	MaxColor     uint8
}

// MeterFeatures asks what the datapath can do in meters: OFPMP_METER_FEATURES.
// Open vSwitch answers in the form of OpenFlow 1.3 to 1.4, without the word that
// 1.5 added: lib/ofp-meter.c:ofputil_encode_meter_features_reply.
func (c *Conn) MeterFeatures(ctx context.Context) (MeterFeatures, error) {
	f, err := c.Do(ctx, statsRequest(ofp.MultipartMeterFeatures, nil))
	if err != nil {
		return MeterFeatures{}, err
	}
	return parseMeterFeatures(f.Raw)
}

func parseMeterFeatures(msg []byte) (MeterFeatures, error) {
	m, err := ofp.ParseMultipart(msg)
	if err == nil && (m.Type != ofp.MultipartMeterFeatures || len(m.Body) < 16) {
		err = fmt.Errorf("%w: meter features of %d bytes", ErrMalformed, len(m.Body))
	}
	if err != nil {
		return MeterFeatures{}, err
	}
	return MeterFeatures{
		MaxMeters: binary.BigEndian.Uint32(m.Body), BandTypes: binary.BigEndian.Uint32(m.Body[4:]),
		Capabilities: binary.BigEndian.Uint32(m.Body[8:]), MaxBands: m.Body[12], MaxColor: m.Body[13],
	}, nil
}
