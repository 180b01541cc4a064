package webhook

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
)

// decryptKey decrypts a private key that is protected by a password, in either of the
// formats that openssl writes. It returns an unencrypted key unchanged.
func decryptKey(key []byte, password string) ([]byte, error) {
	block, _ := pem.Decode(key)
	switch {
	case block == nil:
		return nil, errors.New("not in PEM format")
	case block.Type == "ENCRYPTED PRIVATE KEY":
		der, err := decryptPKCS8(block.Bytes, password)
		if err != nil {
			return nil, err
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
	case x509.IsEncryptedPEMBlock(block): //nolint:staticcheck // insecure by design, but some files still use it
		der, err := x509.DecryptPEMBlock(block, []byte(password)) //nolint:staticcheck // as above
		if err != nil {
			return nil, err
		}
		return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: der}), nil
	}
	return key, nil // the key is not encrypted, so the password is not needed
}

type encryptedKey struct {
	Algorithm pkix.AlgorithmIdentifier
	Data      []byte
}

type pbes2 struct {
	Derivation, Encryption pkix.AlgorithmIdentifier
}

type pbkdf2Params struct {
	Salt       []byte
	Iterations int
	KeyLength  int                      `asn1:"optional"`
	PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
}

// maxIterations bounds the CPU time that a malformed file can cost.
const maxIterations = 10_000_000

// decryptPKCS8 decrypts PBES2 (RFC 8018) with PBKDF2 and AES in CBC mode. Current tools
// use this scheme.
func decryptPKCS8(der []byte, password string) ([]byte, error) {
	var outer encryptedKey
	var scheme pbes2
	var derivation pbkdf2Params
	var iv []byte
	if _, err := asn1.Unmarshal(der, &outer); err != nil {
		return nil, err
	}
	if outer.Algorithm.Algorithm.String() != "1.2.840.113549.1.5.13" {
		return nil, fmt.Errorf("unsupported encryption %s; use PBES2", outer.Algorithm.Algorithm)
	}
	if _, err := asn1.Unmarshal(outer.Algorithm.Parameters.FullBytes, &scheme); err != nil {
		return nil, err
	}
	if scheme.Derivation.Algorithm.String() != "1.2.840.113549.1.5.12" {
		return nil, fmt.Errorf("unsupported key derivation %s; use PBKDF2", scheme.Derivation.Algorithm)
	}
	if _, err := asn1.Unmarshal(scheme.Derivation.Parameters.FullBytes, &derivation); err != nil {
		return nil, err
	}
	if _, err := asn1.Unmarshal(scheme.Encryption.Parameters.FullBytes, &iv); err != nil {
		return nil, err
	}
	length, ok := map[string]int{
		"2.16.840.1.101.3.4.1.2": 16, "2.16.840.1.101.3.4.1.22": 24, "2.16.840.1.101.3.4.1.42": 32,
	}[scheme.Encryption.Algorithm.String()]
	if !ok {
		return nil, fmt.Errorf("unsupported cipher %s; use AES in CBC mode", scheme.Encryption.Algorithm)
	}
	digest, ok := map[string]func() hash.Hash{
		"": sha1.New, "1.2.840.113549.2.7": sha1.New, "1.2.840.113549.2.9": sha256.New, "1.2.840.113549.2.11": sha512.New,
	}[derivation.PRF.Algorithm.String()]
	if !ok || derivation.Iterations < 1 || derivation.Iterations > maxIterations {
		return nil, fmt.Errorf("unsupported key derivation with hash %s and %d iterations", derivation.PRF.Algorithm, derivation.Iterations)
	}
	secret, err := pbkdf2.Key(digest, password, derivation.Salt, derivation.Iterations, length)
	if err != nil {
		return nil, err
	}
	return decryptCBC(secret, iv, outer.Data)
}

func decryptCBC(secret, iv, data []byte) ([]byte, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	if len(iv) != aes.BlockSize || len(data) == 0 || len(data)%aes.BlockSize != 0 {
		return nil, errors.New("the encrypted data is truncated")
	}
	plain := make([]byte, len(data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, data)
	padding := int(plain[len(plain)-1])
	if padding < 1 || padding > aes.BlockSize {
		return nil, errors.New("wrong password")
	}
	plain = plain[:len(plain)-padding]
	if _, err := x509.ParsePKCS8PrivateKey(plain); err != nil {
		return nil, errors.New("wrong password")
	}
	return plain, nil
}
