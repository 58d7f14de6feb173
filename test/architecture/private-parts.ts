import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lineOf, mask, ROOT, type Finding, type SourceFile } from './source.ts';

interface PrivateParts {
  /** The package, or a module of Node. */
  readonly of: string;
  /** The test that names the version with which the parts were checked, and checks that they do what is needed. */
  readonly test: string;
}

/**
 * The files that use parts of packages which their authors do not document: one file for each package. The file says
 * what it uses and why.
 */
export const PRIVATE_PARTS: Readonly<Record<string, PrivateParts>> = {
  'src/gateway/auth/siwx/wallet-signature.ts': { of: 'secp256k1', test: 'test/gateway/auth/siwx/signatures.test.ts' },
  'src/server/http/connections.ts': { of: 'node:http', test: 'test/server/http/http-private-parts.test.ts' },
  'src/server/http/server.ts': { of: 'fastify', test: 'test/server/http/plugins-have-names.test.ts' },
  'src/gateway/network/tunnel/http2-streams.ts': {
    of: 'node:http2',
    test: 'test/gateway/network/tunnel/http2-private-parts.test.ts',
  },
  'src/console/observe/logger.ts': { of: 'pino', test: 'test/console/observe/log-at-exit.test.ts' },
  'src/console/observe/prometheus.ts': { of: 'prom-client', test: 'test/console/observe/prom-series.test.ts' },
  'src/console/pages/reference/openapi.ts': {
    of: '@fastify/swagger',
    test: 'test/console/pages/reference/swagger-private-parts.test.ts',
  },
  'src/foundation/store/postgres.ts': { of: 'pg', test: 'test/foundation/store/pg-private-parts.test.ts' },
  'src/foundation/wire/undici.ts': { of: 'undici', test: 'test/gateway/network/upstream/undici-private-parts.test.ts' },
};

/** Methods of streams, servers and loggers. A package whose method is replaced may call another one next time. */
const METHODS =
  'push|read|write|pipe|emit|on|once|destroy|pause|resume|close|send|request|dispatch|register|inject|query|connect|child|export|flushSync|onHeadersComplete';

/** Forms of code by which private parts are reached. */
const FORMS: readonly (readonly [form: RegExp, what: string])[] = [
  [/[\w$)\]!?]\.\s*_[A-Za-z]\w*/g, 'uses a member whose name begins with _'],
  [/\bgetOwnPropertySymbols\b/g, 'looks for symbols of an object'],
  [/\[\s*(?:k[A-Z]\w*|symbols\.\w+)!?\s*\]/g, 'uses a symbol of a package'],
  [/\.prototype\.\w+\s*=(?!=)/g, 'changes a prototype'],
  [new RegExp(String.raw`(?<!\bthis)\.(?:${METHODS})\s*=(?![=>])`, 'g'), 'replaces a method'],
  [new RegExp(String.raw`\bObject\.assign\(\s*\w+,\s*\{\s*(?:${METHODS})\b`, 'g'), 'replaces a method'],
  [/\bcreateRequire\(\s*createRequire\b/g, 'loads a package of a package'],
  [/\.shouldKeepAlive\b|\bsendDate\b|\bhashMap\b|\bconnection\s*\.\s*stream\b/g, 'uses an undocumented member'],
];

/** Members that begin with `_` in protocols, not in packages. */
const OF_PROTOCOLS: ReadonlySet<string> = new Set(['_meta']);

/** Uses of private parts of packages in a file that PRIVATE_PARTS does not list. */
export function privateUses({ path, text }: SourceFile, packages: readonly string[]): Finding[] {
  if (path in PRIVATE_PARTS) return [];
  const { code, literals } = mask(text);
  const findings: Finding[] = [];
  const complain = (at: number, what: string) =>
    findings.push(
      `${path}:${lineOf(text, at)} ${what}: use what the package documents, or put this into the file of the package in test/architecture/private-parts.ts`,
    );
  for (const [form, what] of FORMS) for (const { index } of code.matchAll(form)) complain(index, what);
  for (const { start, value } of literals) {
    if (/^_[A-Za-z]\w*$/.test(value) && !OF_PROTOCOLS.has(value) && /\[\s*['"]$/.test(text.slice(0, start)))
      complain(start, 'uses a member whose name begins with _');
    if (isInside(value, packages)) complain(start, `names ${value}, a file inside of a package`);
  }
  return findings;
}

/** Whether a text names a file of a package that the package does not offer by its `exports`. */
function isInside(text: string, packages: readonly string[]): boolean {
  const name = /^(?:@[\w.-]+\/)?[\w.-]+(?=\/[\w@])/.exec(text)?.[0];
  if (name === undefined || !packages.includes(name)) return false;
  const [folder = ''] = text.slice(name.length + 1).split('/');
  if (!existsSync(join(ROOT, 'node_modules', name, folder))) return false;
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8')) as {
    exports?: unknown;
  };
  return exports === undefined || /^(?:lib|dist|src|build)$/.test(folder);
}
