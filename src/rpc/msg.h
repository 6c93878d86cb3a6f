/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The words of ONC RPC version 2 (RFC 5531): what a call's header says, and
 * the headers of replies. Pure functions over xdr/ cursors.
 */
#ifndef TR_RPC_MSG_H
#define TR_RPC_MSG_H

#include "xdr/fields.h"

enum rpc_msg_type { RPC_CALL = 0, RPC_REPLY = 1 };

#define RPC_VERSION 2

/* Flavours of credentials. */
enum rpc_flavor { RPC_AUTH_NONE = 0, RPC_AUTH_SYS = 1, RPC_AUTH_SHORT = 2 };

/* RFC 5531, section 8.2: the body of a credential or verifier. */
#define RPC_AUTH_BODY_MAX 400
/* RFC 5531, appendix A. */
#define RPC_MACHINE_MAX 255
#define RPC_GIDS_MAX 16

/* Why a credential was refused (auth_stat). */
enum rpc_auth_stat {
	RPC_AUTH_OK = 0,
	RPC_AUTH_BADCRED = 1,
	RPC_AUTH_REJECTEDCRED = 2,
	RPC_AUTH_BADVERF = 3,
	RPC_AUTH_TOOWEAK = 5,
};

/*
 * How a call ends. The first six are accept_stat on the wire; the others are
 * this server's own.
 */
enum rpc_status {
	RPC_SUCCESS = 0,
	RPC_PROG_UNAVAIL = 1,
	RPC_PROG_MISMATCH = 2,
	RPC_PROC_UNAVAIL = 3,
	RPC_GARBAGE_ARGS = 4,
	RPC_SYSTEM_ERR = 5,
	RPC_TOOWEAK = 16, /* MSG_DENIED, AUTH_TOOWEAK */
	RPC_DROP = 17, /* no reply: the client will ask again */
	RPC_AGAIN = 18, /* after rpc_try_block() refused: run again later */
};

/* The caller, as far as the credential tells. Nothing in it is verified. */
struct rpc_cred {
	uint32_t flavor;
	uint32_t stamp;
	uint32_t uid; /* AUTH_SYS, else 0 */
	uint32_t gid;
	uint32_t nr_gids;
	uint32_t gids[RPC_GIDS_MAX];
	struct xdr_opaque machine; /* in the request, not terminated */
};

struct rpc_header {
	uint32_t xid;
	uint32_t rpcvers;
	uint32_t prog;
	uint32_t vers;
	uint32_t proc;
	enum rpc_auth_stat auth; /* other than RPC_AUTH_OK: answer that */
	struct rpc_cred cred;
};

/*
 * Reads a call's header up to the arguments. -EBADMSG: the message ends too
 * early or is no call. With rpcvers other than 2 nothing after it was read; a
 * refused credential is reported in auth and the header is read to its end.
 */
int rpc_header_get(struct xdr_in *in, struct rpc_header *h) MUST_CHECK;

/* Replies up to the results. accept is one of the first six of rpc_status,
 * other than RPC_PROG_MISMATCH. */
void rpc_put_accepted(struct xdr_out *out, uint32_t xid, uint32_t accept);
void rpc_put_prog_mismatch(struct xdr_out *out, uint32_t xid, uint32_t low,
			   uint32_t high);
void rpc_put_rpc_mismatch(struct xdr_out *out, uint32_t xid);
void rpc_put_auth_error(struct xdr_out *out, uint32_t xid,
			enum rpc_auth_stat why);

/* Bytes of an accepted reply before its results. */
#define RPC_ACCEPTED_LEN 24

/* The record mark of RFC 5531, section 11. */
#define RPC_LAST_FRAGMENT 0x80000000u

#endif
