// SPDX-License-Identifier: GPL-2.0
/*
 * Addresses of the functions behind the ports of VFs: the kernel's own netdevsim has none. An address is zero
 * until an administrator sets it, as on a card whose firmware assigned none. Included by dev.c.
 */
static struct nsim_dev_port *function_of(struct devlink_port *port)
{
	struct nsim_dev_port *p = container_of(port, struct nsim_dev_port, devlink_port);

	return nsim_dev_port_is_vf(p) ? p : NULL;
}

static int function_get(struct devlink_port *port, u8 *address, int *length, struct netlink_ext_ack *extack)
{
	struct nsim_dev_port *p = function_of(port);

	if (!p)
		return -EOPNOTSUPP;
	*length = ETH_ALEN;
	ether_addr_copy(address, p->function_address);
	return 0;
}

static int function_set(struct devlink_port *port, const u8 *address, int length, struct netlink_ext_ack *extack)
{
	struct nsim_dev_port *p = function_of(port);

	if (!p) {
		NL_SET_ERR_MSG(extack, "only functions of VFs have an address");
		return -EOPNOTSUPP;
	}
	if (length != ETH_ALEN) {
		NL_SET_ERR_MSG(extack, "not an Ethernet address");
		return -EINVAL;
	}
	ether_addr_copy(p->function_address, address);
	return 0;
}
