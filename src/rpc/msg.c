/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * RPC headers, RFC 5531 section 9.
 *
 * A credential's body is read through a cursor of its own, so that a length
 * inside it can never reach beyond it, and what is left over in it refuses it.
 */
#include "rpc/msg.h"

XDR_OPAQUE(rpc_auth_body, RPC_AUTH_BODY_MAX)
XDR_OPAQUE(rpc_machine, RPC_MACHINE_MAX)
XDR_ARRAY(rpc_gids, u32, RPC_GIDS_MAX)

#define RPC_OPAQUE_AUTH(F)                                                     \
	F(u32, flavor)                                                         \
	F(rpc_auth_body, body)
XDR_STRUCT(rpc_opaque_auth, RPC_OPAQUE_AUTH)

/* RFC 5531, appendix A: authsys_parms. */
#define RPC_AUTH_SYS_PARMS(F)                                                  \
	F(u32, stamp)                                                          \
	F(rpc_machine, machine)                                                \
	F(u32, uid)                                                            \
	F(u32, gid)                                                            \
	F(rpc_gids, gids)
XDR_STRUCT(rpc_auth_sys, RPC_AUTH_SYS_PARMS)

static enum rpc_auth_stat cred_get_sys(struct xdr_in *body, struct rpc_cred *c)
{
	struct rpc_auth_sys sys;

	if (xdr_get_rpc_auth_sys(body, &sys) || xdr_in_left(body))
		return RPC_AUTH_BADCRED;
	c->stamp = sys.stamp;
	c->machine = sys.machine;
	c->uid = sys.uid;
	c->gid = sys.gid;
	c->nr_gids = sys.gids.nr;
	memcpy(c->gids, sys.gids.e, sys.gids.nr * sizeof(c->gids[0]));
	return RPC_AUTH_OK;
}

static enum rpc_auth_stat cred_get(const struct rpc_opaque_auth *a,
				   struct rpc_cred *c)
{
	struct xdr_in body;

	c->flavor = a->flavor;
	c->stamp = c->uid = c->gid = c->nr_gids = 0;
	c->machine = (struct xdr_opaque){ 0 };
	xdr_in_init(&body, a->body.data, a->body.len);
	switch (a->flavor) {
	case RPC_AUTH_NONE:
		return RPC_AUTH_OK;
	case RPC_AUTH_SYS:
		return cred_get_sys(&body, c);
	case RPC_AUTH_SHORT:
		/* We never hand out short forms: the client shall send the
		 * full one (appendix A). */
		return RPC_AUTH_REJECTEDCRED;
	default:
		return RPC_AUTH_BADCRED;
	}
}

int rpc_header_get(struct xdr_in *in, struct rpc_header *h)
{
	struct rpc_opaque_auth cred, verf;
	uint32_t type;

	if (xdr_get_u32(in, &h->xid) || xdr_get_u32(in, &type) ||
	    type != RPC_CALL || xdr_get_u32(in, &h->rpcvers))
		return -EBADMSG;
	if (h->rpcvers != RPC_VERSION)
		return 0;
	if (xdr_get_u32(in, &h->prog) || xdr_get_u32(in, &h->vers) ||
	    xdr_get_u32(in, &h->proc) || xdr_get_rpc_opaque_auth(in, &cred) ||
	    xdr_get_rpc_opaque_auth(in, &verf))
		return -EBADMSG;
	h->auth = cred_get(&cred, &h->cred);
	return 0;
}

/* MSG_ACCEPTED with an empty verifier. */
void rpc_put_accepted(struct xdr_out *out, uint32_t xid, uint32_t accept)
{
	xdr_out_u32(out, xid);
	xdr_out_u32(out, RPC_REPLY);
	xdr_out_u32(out, 0);
	xdr_out_u32(out, RPC_AUTH_NONE);
	xdr_out_u32(out, 0);
	xdr_out_u32(out, accept);
}

void rpc_put_prog_mismatch(struct xdr_out *out, uint32_t xid, uint32_t low,
			   uint32_t high)
{
	rpc_put_accepted(out, xid, RPC_PROG_MISMATCH);
	xdr_out_u32(out, low);
	xdr_out_u32(out, high);
}

/* MSG_DENIED, RPC_MISMATCH. */
void rpc_put_rpc_mismatch(struct xdr_out *out, uint32_t xid)
{
	xdr_out_u32(out, xid);
	xdr_out_u32(out, RPC_REPLY);
	xdr_out_u32(out, 1);
	xdr_out_u32(out, 0);
	xdr_out_u32(out, RPC_VERSION);
	xdr_out_u32(out, RPC_VERSION);
}

/* MSG_DENIED, AUTH_ERROR. */
void rpc_put_auth_error(struct xdr_out *out, uint32_t xid,
			enum rpc_auth_stat why)
{
	xdr_out_u32(out, xid);
	xdr_out_u32(out, RPC_REPLY);
	xdr_out_u32(out, 1);
	xdr_out_u32(out, 1);
	xdr_out_u32(out, why);
}
