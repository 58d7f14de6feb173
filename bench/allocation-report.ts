/** A node of the tree of calls in a profile of the sampling heap profiler of V8. */
export interface AllocationNode {
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  /** The bytes that the function has allocated itself, when it was called by this path. */
  readonly selfSize: number;
  readonly children: readonly AllocationNode[];
}

/** What a call consists of. The first pattern that fits the path of a file names its part. */
const PARTS: readonly (readonly [RegExp, string])[] = [
  [/^node_modules\/undici\//, 'undici'],
  [/^node_modules\//, 'Fastify'],
  [/^src\/gateway\/network\//, 'request to the provider'],
  [/^src\/foundation\/wire\//, 'JSON read and checked'],
  [/^src\/openai\/.*(?:encoder|reply|end|whole-reply|usage)\.ts$/, 'chat: reply'],
  [/^src\/openai\//, 'chat: request'],
  [/^src\/(?:mcp|a2a|media|console\/rpc|gateway\/(?:json-rpc|bridge|tasks))\//, 'protocol'],
  [/^src\/billing\/(?:ledger|group)/, 'ledger'],
  [/^src\/foundation\/store\//, 'ledger'],
  [/^src\/(?:billing(?!\/analytics)|program\/app)\//, 'billing middleware'],
  [/^src\/gateway\/call\/(?:paid-route|handle-paid|idempot|response-record|repeat)/, 'paid route'],
  [/^src\/(?:gateway\/call|server\/catalog)\//, 'pipeline'],
  [/^src\/server\/http\//, 'bodies and answers'],
  [/^src\/(?:server\/(?:limits|accounts)|gateway\/auth)\//, 'admission'],
  [/^src\/(?:console\/observe|billing\/analytics)\//, 'metrics and log'],
];
const OTHER = 'Node';

const pathOf = (url: string) => url.replace(/^.*\/(?=(?:src|bench|node_modules)\/)/, '');

/**
 * Lists the bytes per unit of work: by part of a call, by folder, by function with all that it calls, and by function
 * alone. What Node and natives allocate belongs to the part that called them. V8 counts an inlined function for the one
 * that it is inlined into; with `--node='--no-turbo-inlining --no-maglev-inlining'` each function counts for itself,
 * and the sum is a little larger.
 */
export function allocationLines(head: AllocationNode, units: number, count: number): string[] {
  const functions = new Map<string, number>();
  const inclusive = new Map<string, number>();
  const folders = new Map<string, number>();
  const parts = new Map<string, number>();
  const add = (sums: Map<string, number>, key: string, bytes: number) => sums.set(key, (sums.get(key) ?? 0) + bytes);
  const open = new Set<string>();
  const visit = ({ callFrame, selfSize, children }: AllocationNode, caller: string, callerPart: string): number => {
    const path = pathOf(callFrame.url);
    const folder =
      path === ''
        ? `${caller} (native)`
        : (/^(?:src\/[^/]+\/[^/]+|node_modules\/(?:@[^/]+\/)?[^/]+|node:)/.exec(path)?.[0] ?? path);
    const name = `${callFrame.functionName || '(anonymous)'}  ${path}:${callFrame.lineNumber + 1}`;
    const part = PARTS.find(([pattern]) => pattern.test(path))?.[1] ?? callerPart;
    add(functions, name, selfSize);
    add(folders, folder, selfSize);
    add(parts, part, selfSize);
    const isOutermost = !open.has(name);
    open.add(name);
    let sum = selfSize;
    for (const child of children) sum += visit(child, path === '' ? caller : folder, part);
    if (isOutermost) {
      open.delete(name);
      add(inclusive, name, sum);
    }
    return sum;
  };
  const all = visit(head, '', OTHER);
  const lines = (title: string, sums: Map<string, number>, most: number) => [
    title,
    ...[...sums]
      .toSorted((a, b) => b[1] - a[1])
      .slice(0, most)
      .map(([name, bytes]) => `  ${(bytes / units).toFixed(0).padStart(7)}  ${name}`),
  ];
  return [
    `bytes a unit: ${(all / units).toFixed(0)}`,
    ...lines('parts', parts, PARTS.length),
    ...lines('folders', folders, 30),
    ...lines('functions with all that they call', inclusive, count),
    ...lines('functions', functions, count),
  ];
}
