// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLSFiles returns the configuration of ovs-ofctl's options -p, -c and -C: a
// private key, its certificate, and the CA certificate that the peer's must
// chain to, all PEM files. It serves to connect and to listen.
//
// As in Open vSwitch (lib/stream-ssl.c) the peer must have a certificate that
// the CA has signed, whatever name is in it: the certificates that ovs-pki(8)
// makes have no host name that could be checked.
func TLSFiles(privateKey, certificate, caCert string) (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(certificate, privateKey)
	if err != nil {
		return nil, fmt.Errorf("ofctrl: certificate %s with key %s: %w", certificate, privateKey, err)
	}
	pem, err := os.ReadFile(caCert) //nolint:gosec // the caller names the file
	if err != nil {
		return nil, fmt.Errorf("ofctrl: CA certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ofctrl: no certificate in %s", caCert)
	}
	return &tls.Config{
		Certificates:       []tls.Certificate{own},
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // names are not checked; verifyChain checks the rest
		ClientAuth:         tls.RequireAnyClientCert,
		ClientCAs:          roots,
		VerifyConnection:   func(s tls.ConnectionState) error { return verifyChain(s, roots) },
	}, nil
}

// verifyChain checks that the peer's certificate chains to one of the roots.
func verifyChain(s tls.ConnectionState, roots *x509.CertPool) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("ofctrl: the peer sent no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err
}
