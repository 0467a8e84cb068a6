import { net } from '../processes/node-parts.ts'

/*
 * Addresses that are not on the public internet: a model that may fetch pages must not thereby reach this machine, its
 * network, or the metadata service of its cloud. The list answers for IPv4 addresses inside IPv6 ones as well.
 */
const IPV4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]

// Also the forms that lead to an IPv4 address through a translator: what that one can reach is not known.
const IPV6: readonly (readonly [string, number])[] = [
  ['::', 96],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['2001::', 32],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
]

function listPrivate() {
  const list = new (net().BlockList)()
  for (const [network, prefix] of IPV4) list.addSubnet(network, prefix, 'ipv4')
  for (const [network, prefix] of IPV6) list.addSubnet(network, prefix, 'ipv6')
  return list
}
let listed: ReturnType<typeof listPrivate> | undefined

export const isPrivate = (address: string): boolean =>
  (listed ??= listPrivate()).check(address, net().isIPv6(address) ? 'ipv6' : 'ipv4')

export interface Address {
  readonly address: string
  readonly family: 4 | 6
}

export type Resolve = (host: string) => Promise<readonly Address[]>

export const resolveHost: Resolve = async (host) =>
  (await process.getBuiltinModule('node:dns/promises').lookup(host, { all: true })).map(({ address, family }) => ({
    address,
    family: family === 6 ? 6 : 4,
  }))

/**
 * The address to connect to, or why not. One private address among several is enough to refuse: which of them would be
 * used is not the model's to find out. Decimal and octal forms are made plain by the URL parser before they get here.
 */
export async function checkedAddress(
  url: URL,
  allowed: (host: string) => boolean,
  resolve: Resolve,
): Promise<Address | { readonly refused: string }> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const literal = net().isIP(host)
  const addresses: readonly Address[] =
    literal === 0 ? await resolve(host) : [{ address: host, family: literal === 6 ? 6 : 4 }]
  const hidden = addresses.find(({ address }) => isPrivate(address))
  if (hidden !== undefined && !allowed(url.host) && !allowed(host)) {
    return { refused: `${host} is a private address (${hidden.address}), which is not allowed` }
  }
  return addresses[0] ?? { refused: `${host} has no address` }
}
