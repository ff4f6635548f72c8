/* Certificates and keys in files, made when they are needed. */
#ifndef PAWL_TESTS_HTTP_PEMS_H
#define PAWL_TESTS_HTTP_PEMS_H

#include "testing.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct pems {
    char folder[64];
    char cert[96];
    char key[96];
    EVP_PKEY *pkey;
    X509 *x509;
};

static inline void pems_write(struct pems *p)
{
    FILE *cert = fopen(p->cert, "w"), *key = fopen(p->key, "w");
    assert_true(cert != NULL && key != NULL);
    assert_int_equal(PEM_write_X509(cert, p->x509), 1);
    assert_int_equal(PEM_write_PrivateKey(key, p->pkey, NULL, NULL, 0, NULL, NULL), 1);
    fclose(cert);
    fclose(key);
}

/* A certificate of this name, signed by itself, on a curve or with RSA. */
static inline void pems_make(struct pems *p, const char *name, int with_rsa)
{
    p->pkey = with_rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256");
    p->x509 = X509_new();
    assert_true(p->pkey != NULL && p->x509 != NULL);
    X509_set_version(p->x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(p->x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(p->x509), -3600);
    X509_gmtime_adj(X509_getm_notAfter(p->x509), 24 * 3600);
    X509_set_pubkey(p->x509, p->pkey);
    X509_NAME *subject = X509_get_subject_name(p->x509);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(p->x509, subject);
    assert_true(X509_sign(p->x509, p->pkey, EVP_sha256()) > 0);
    pems_write(p);
}

static inline void pems_free_keys(struct pems *p)
{
    X509_free(p->x509);
    EVP_PKEY_free(p->pkey);
    p->x509 = NULL;
    p->pkey = NULL;
}

static inline void pems_open(struct pems *p, const char *name, int with_rsa)
{
    (void)snprintf(p->folder, sizeof(p->folder), "/tmp/pawl-pems-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    (void)snprintf(p->cert, sizeof(p->cert), "%s/cert.pem", p->folder);
    (void)snprintf(p->key, sizeof(p->key), "%s/key.pem", p->folder);
    pems_make(p, name, with_rsa);
}

static inline void pems_close(struct pems *p)
{
    pems_free_keys(p);
    unlink(p->cert);
    unlink(p->key);
    rmdir(p->folder);
}

#endif
