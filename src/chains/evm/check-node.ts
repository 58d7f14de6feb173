import { domainSeparator, zeroAddress, zeroHash, type Hex } from 'viem';
import type { ChainSetup } from '../chain.ts';
import { NoSuchAsset, type AssetDomain, type EvmAsset } from './asset.ts';
import { evmHeads } from './heads.ts';
import type { EvmNode } from './rpc.ts';

interface CheckNodeOptions extends Pick<ChainSetup, 'network' | 'finality'> {
  readonly node: EvmNode;
  readonly asset: EvmAsset;
  /** Address of the asset. */
  readonly address: Hex;
  readonly domain: AssetDomain;
}

/**
 * Checks a node and its asset. Rejects with Error if the node serves another chain, or if the asset cannot be used for
 * payments.
 */
export async function checkNode({ node, asset, network, address, domain, finality }: CheckNodeOptions): Promise<void> {
  const real = await node.chainId();
  if (real !== BigInt(domain.chainId))
    throw new Error(`The node for ${network} belongs to chain eip155:${real}. Set the address of a node of ${network}`);
  if ((await node.code(address, 'latest')) === '0x')
    throw new Error(`There is no contract at ${address} on ${network}: set the address of the asset`);
  const { latest } = await evmHeads(node, finality);
  if (latest.baseFee === null)
    throw new Error(`${network} has no base fee (EIP-1559), but the transactions of this gateway need one`);
  const decimals = await answer(asset.decimals(), 'decimals');
  if (decimals !== 6) throw new Error(`${address} on ${network} has ${decimals} decimals; micro-USD are 6`);
  await answer(asset.authorizationState(zeroAddress, zeroHash, 'latest'), 'authorizationState (EIP-3009)');
  const separator = await answer(asset.domainSeparator(), 'DOMAIN_SEPARATOR');
  if (separator !== domainSeparator({ domain }))
    throw new Error(
      `The EIP-712 domain of ${address} on ${network} is not of name ${JSON.stringify(domain.name)} and version ${JSON.stringify(domain.version)}: every signature would be refused. Set the name and version that the asset signs with`,
    );

  async function answer<T>(asked: Promise<T>, what: string): Promise<T> {
    try {
      return await asked;
    } catch (error) {
      if (!(error instanceof NoSuchAsset)) throw error;
      throw new Error(`${address} on ${network} does not answer ${what}: it is not USDC, nor a token like it`, {
        cause: error,
      });
    }
  }
}
