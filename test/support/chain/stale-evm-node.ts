import type { FaultRule, RpcRequest } from './rpc-fault-proxy.ts';

/**
 * An EVM node that has no block after `height`. Its newest block is this one, and it refuses requests for the state of
 * later blocks. Like a real node it finds no logs after its newest block, without an error.
 */
export function staleEvmNode(height: number): readonly FaultRule[] {
  const quantity = (number: number): string => `0x${Math.max(0, number).toString(16)}`;
  const later = (tag: unknown): boolean =>
    typeof tag === 'string' && tag.startsWith('0x') && tag.length < 20 && Number(tag) > height;
  const older = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(older);
    if (value === 'latest' || value === 'pending') return quantity(height);
    if (value === 'finalized' || value === 'safe') return quantity(height - 2);
    if (typeof value === 'object' && value !== null && 'toBlock' in value && later(value.toBlock))
      return { ...value, toBlock: quantity(height) };
    return value;
  };
  return [
    {
      methods: ['eth_call', 'eth_getCode'],
      when: ({ params }: RpcRequest) => Array.isArray(params) && later(params[1]),
      fault: { kind: 'error', code: -32000, message: 'header not found' },
    },
    {
      fault: {
        kind: 'rewrite',
        request: (request) => ({ ...request, params: older(request.params) }),
        result(result, { method, params }) {
          if (method === 'eth_blockNumber') return quantity(height);
          if (method === 'eth_getBlockByNumber') return Array.isArray(params) && later(params[0]) ? null : result;
          if (method !== 'eth_getTransactionReceipt') return result;
          return later((result as { blockNumber?: unknown } | null)?.blockNumber) ? null : result;
        },
      },
    },
  ];
}
