import { posix } from 'node:path';
import { moduleOf } from './floors.ts';
import { lineOf, mask, type Finding, type SourceFile } from './source.ts';

interface Module {
  /** Modules it may import, by public API: `billing/amounts` for `#billing/amounts`, `billing` also for `#billing`. */
  readonly modules: readonly string[];
  /** npm packages it may import; `@scope/*` stands for all of a scope. */
  readonly packages: readonly string[];
  /** Modules whose programs it starts, in processes or threads: it names their files by path and imports none. */
  readonly starts?: readonly string[];
}

const CALL = ['call', 'call/flags', 'call/refused-fields'];
/** What the protocols share. Of money they see amounts, never the ledger; of the database nothing. */
const PROTOCOL = [
  'errors',
  'security',
  'wire',
  'billing/amounts',
  'config',
  'config/model-kinds',
  'config/refused-cap',
  'accounts',
  'limits',
  'http',
  'http/error-schemas',
  'catalog',
  'payments',
  ...CALL,
  'json-rpc',
  'bridge',
  'auth',
  'files',
  'tasks',
  'webhooks',
];
/** What most modules of the gateway use of those below. */
const SERVER = ['errors', 'security', 'store', 'wire', 'billing/amounts', 'config', 'accounts', 'limits', 'http'];
/** All modules below the protocols, with the narrower public APIs for commands that load little. */
const MIDDLE = [
  'version',
  'errors',
  'security',
  'store',
  'store/backup',
  'store/database-name',
  'store/owner',
  'wire',
  'billing',
  'chains',
  'config',
  'accounts',
  'accounts/names',
  'limits',
  'http',
  'http/server',
  'catalog',
  'payments',
  'payments/on-chains',
  'call',
  'bridge',
  'auth',
  'auth/identity',
  'auth/keys',
  'network',
  'network/providers',
  'authorization',
  'files',
  'tasks',
  'kept-responses',
  'batch-jobs',
  'webhooks',
  'observe',
  'billing/call-end',
  'analytics',
  'pages',
  'pages/administration',
];

/**
 * The import table of docs/architecture.md, from the lowest module up: a module imports only modules above it in this
 * list. A module that is not here may not exist.
 */
export const MODULES: Readonly<Record<string, Module>> = {
  // One file without imports.
  version: { modules: [], packages: [] },
  errors: { modules: [], packages: [] },
  maps: { modules: [], packages: [] },
  security: { modules: [], packages: [] },
  // In the database's thread it starts what brings the ledger's tables up to the log.
  wire: { modules: ['errors', 'security'], packages: ['undici'] },
  store: { modules: ['version', 'wire/places'], packages: ['pg', 'ioredis'], starts: ['billing'] },
  billing: { modules: ['store', 'maps'], packages: [] },
  chains: {
    modules: ['store', 'wire', 'billing'],
    packages: ['@x402/*', '@solana/kit', '@solana-program/token', 'viem', 'bs58'],
  },
  analytics: { modules: ['store', 'billing', 'billing/call-end', 'billing/resolved'], packages: [] },
  config: { modules: ['security', 'wire', 'billing/amounts'], packages: ['smol-toml', 'bs58'] },
  accounts: {
    modules: ['errors', 'maps', 'security', 'store', 'wire', 'billing', 'config/evm-address', 'config/names'],
    packages: ['fastify', 'bs58'],
  },
  limits: { modules: ['wire/places', 'errors', 'store', 'wire', 'config', 'accounts'], packages: [] },
  http: {
    modules: ['errors', 'security', 'store', 'wire', 'wire/budgets', 'billing', 'config', 'accounts', 'limits'],
    packages: ['fastify', '@fastify/*', 'ajv', 'ws'],
  },
  catalog: { modules: ['errors', 'security', 'store', 'wire', 'billing/amounts', 'config', 'accounts'], packages: [] },
  // Only its public API `payments/on-chains` loads the chains.
  payments: {
    modules: ['errors', 'wire', 'billing', 'chains', 'accounts', 'accounts/names', 'http'],
    packages: ['fastify'],
  },
  call: {
    modules: [
      'errors',
      'security',
      'store',
      'wire',
      'maps',
      'billing',
      'billing/compose',
      'config',
      'accounts',
      'limits',
      'http',
      'catalog',
      'payments',
    ],
    packages: ['fastify'],
  },
  'json-rpc': { modules: ['wire', 'call'], packages: [] },
  bridge: { modules: ['errors', 'wire', 'config', 'accounts', 'catalog', 'call'], packages: [] },
  auth: {
    modules: [...SERVER, 'accounts/names', 'store/owner', 'call'],
    packages: ['fastify', 'bs58', 'jose', 'openid-client', 'viem', 'secp256k1'],
  },
  network: {
    modules: [
      'errors',
      'security',
      'store',
      'wire',
      'wire/budgets',
      'wire/frame-meter',
      'maps',
      'wire/replies',
      'wire/undici',
      'billing',
      'config',
      'accounts',
      'accounts/names',
      'http',
      'catalog',
      'call',
      'auth',
    ],
    packages: ['fastify', 'undici', 'ws', 'bs58'],
  },
  authorization: {
    modules: ['errors', 'security', 'store', 'wire', 'config', 'accounts', 'http', 'call', 'auth', 'network'],
    packages: ['fastify', 'oidc-provider'],
  },
  files: { modules: ['errors', 'store', 'wire', 'http', 'call', 'network'], packages: ['aws4fetch'] },
  tasks: { modules: ['errors', 'store', 'billing', 'config', 'accounts', 'catalog', ...CALL, 'network'], packages: [] },
  webhooks: {
    modules: [
      'security',
      'store',
      'wire',
      'billing/amounts',
      'config',
      'accounts',
      'accounts/names',
      'auth',
      'network',
      'tasks',
    ],
    packages: [],
  },
  'kept-responses': { modules: ['errors', 'maps', 'security', 'store', 'wire', 'call', 'tasks'], packages: [] },
  'batch-jobs': {
    modules: ['errors', 'security', 'store', 'wire', 'wire/replies', 'billing', 'accounts', 'call', 'tasks'],
    packages: [],
  },
  // The second public API of wire is for the thread that reads large replies.
  openai: {
    modules: [...PROTOCOL, 'maps', 'kept-responses', 'batch-jobs', 'wire/replies'],
    packages: ['fastify', '@fastify/*', 'mediabunny'],
  },
  // Of the database it sees the rows of its own sessions.
  mcp: { modules: [...PROTOCOL, 'store', 'maps'], packages: ['fastify'] },
  a2a: { modules: [...PROTOCOL, 'maps'], packages: ['fastify'] },
  media: { modules: [...PROTOCOL, 'wire/replies', 'network/guarded-fetch'], packages: ['fastify'] },
  // The program of its processes is worker/main.ts, which imports nothing of the others.
  'ai-sdk': {
    modules: ['security', 'wire', 'wire/budgets', 'wire/frame-meter', 'wire/undici', 'config', 'network/guarded-fetch'],
    packages: ['undici', '@ai-sdk/provider'],
  },
  // The list of prices is large: it is loaded only if a file names a provider.
  'list-prices': {
    modules: ['wire', 'billing/amounts', 'config', 'config/known-providers', 'config/model-kinds'],
    packages: ['@pydantic/genai-prices'],
  },
  // A proxy that a provider runs: it loads no gateway, no database and no chain.
  proxy: {
    modules: [
      'security',
      'wire',
      'wire/text-line',
      'wire/undici',
      'config',
      'config/known-providers',
      'config/model-kinds',
      'config/refused-cap',
      'json-rpc/message',
      'network/tunnel',
      // The same check of lists as the gateway's.
      'mcp/lists',
      'ai-sdk',
    ],
    packages: ['undici', 'bs58', 'ws', 'tweetnacl', 'viem'],
  },
  observe: {
    modules: [
      'security',
      'store',
      'wire',
      'wire/text-line',
      'billing',
      'billing/call-end',
      'config',
      'accounts',
      'http',
      'catalog',
      ...CALL,
      'auth',
      'network',
      'tasks',
    ],
    packages: ['fastify', 'pino', 'prom-client', '@opentelemetry/*'],
  },
  pages: {
    modules: [
      'wire/places',
      'errors',
      'security',
      'store',
      'wire',
      'billing',
      'chains',
      'config',
      'config/known-providers',
      'config/model-kinds',
      'accounts',
      'accounts/names',
      'limits',
      'http',
      'http/error-schemas',
      'catalog',
      'payments',
      'payments/on-chains',
      ...CALL,
      'auth',
      'auth/keys',
      'network',
      'authorization',
      'tasks',
      'webhooks',
      'observe',
      'billing/call-end',
      'analytics',
    ],
    packages: ['fastify', '@fastify/*', 'marked'],
  },
  rpc: { modules: PROTOCOL, packages: ['fastify', 'json-rpc-2.0'] },
  // A provider as anybody would write it, with the official SDKs.
  demo: { modules: [], packages: ['@a2a-js/sdk', '@modelcontextprotocol/server'] },
  app: {
    modules: [
      ...MIDDLE,
      'billing/archive',
      'billing/compose',
      'call/compose',
      'openai',
      'mcp',
      'a2a',
      'media',
      'rpc',
      'ai-sdk',
      'proxy',
      'proxy/wallet',
    ],
    packages: ['fastify'],
  },
  cli: {
    modules: [
      ...MIDDLE,
      'billing/archive',
      'billing/compose',
      'wire/text-line',
      'config/known-providers',
      'ai-sdk',
      'list-prices',
      'proxy',
      'proxy/wallet',
      'app',
      'app/journal',
      'app/known-identity',
      'app/administration',
    ],
    packages: ['commander', 'smol-toml', 'jsonc-parser', 'yaml'],
    starts: ['demo'],
  },
  main: { modules: ['cli'], packages: [] },
};

/** Single files in src/ that are named by their path, as they have no public API. */
const NAMED_BY_PATH = ['version', 'main'];

/** Where the environment and the command line may be read. */
const READS_ENVIRONMENT = [
  /^src\/main\.ts$/,
  /^src\/program\/cli\//,
  /^src\/program\/demo\/main\.ts$/,
  /^src\/server\/config\/file\.ts$/,
];

/** Where the billing middleware may be made: once, in the pipeline. */
const MOUNTS_BILLING = [/^src\/gateway\/call\/billing\.ts$/, /^src\/billing\/[\w.-]+$/];

export interface Import {
  readonly specifier: string;
  readonly line: number;
  /** Names between the braces; empty for other forms. */
  readonly names: readonly string[];
  /** Named by `new URL`: a file that is started or read, not imported. */
  readonly isUrl: boolean;
}

const IMPORT =
  /\b(?:import|export)\b(?:\s+type\b)?\s*(?:([\w$*\s,{}]+?)\s*\bfrom\s*)?(['"])|\b(?:import|require)\s*\(\s*(['"`])|\bnew\s+URL\s*\(\s*(['"`])/g;

/**
 * Every module named by an import, a re-export, a dynamic import, a require or a `new URL` (worker files), comments
 * and strings aside.
 */
export function importsOf(file: SourceFile): Import[] {
  const { code, literals } = mask(file.text);
  const byStart = new Map(literals.map((literal) => [literal.start, literal.value]));
  const found: Import[] = [];
  for (const match of code.matchAll(IMPORT)) {
    const specifier = byStart.get(match.index + match[0].length);
    if (specifier === undefined) continue;
    if (match[4] && !/^\.\.?\/.*\.[mc]?[jt]s$/.test(specifier)) continue;
    const braces = /\{([^}]*)\}/.exec(match[1] ?? '')?.[1] ?? '';
    const names = braces
      .split(',')
      .map((name) =>
        name
          .trim()
          .replace(/^type\s+/, '')
          .replace(/\s+as\s.*$/s, ''),
      )
      .filter(Boolean);
    found.push({
      specifier,
      line: lineOf(file.text, match.index + match[0].length),
      names,
      isUrl: match[4] !== undefined,
    });
  }
  return found;
}

const matches = (patterns: readonly RegExp[], path: string) => patterns.some((pattern) => pattern.test(path));
const packageOf = (specifier: string) =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
const allowsPackage = (allowed: readonly string[], name: string) =>
  allowed.some((entry) => (entry.endsWith('/*') ? name.startsWith(entry.slice(0, -1)) : entry === name));

/** Violations of the import table in the given files of src/; `aliases` are the names of package.json's `imports`. */
export function checkImports(files: readonly SourceFile[], aliases: readonly string[]): Finding[] {
  const findings: Finding[] = [];
  for (const file of files) {
    const { path } = file;
    for (const one of importsOf(file)) {
      const complain = (why: string, right: string) =>
        findings.push(`${path}:${one.line} imports ${JSON.stringify(one.specifier)}: ${why}; ${right}`);
      if (one.specifier.startsWith('#') && !aliases.includes(one.specifier))
        complain('no such alias', `package.json names ${aliases.join(', ')}`);
      else if (
        !matches(READS_ENVIRONMENT, path) &&
        /^(?:node:)?process$/.test(one.specifier) &&
        one.names.some((name) => name === 'env' || name === 'argv')
      )
        complain(
          'only main.ts, cli, the demo program and config/file.ts read env and argv',
          'take the value as an argument',
        );
      checkOne(path, one, complain);
    }
    findings.push(...checkWords(file));
  }
  return findings;
}

function checkOne(path: string, one: Import, complain: (why: string, right: string) => void): void {
  const module = moduleOf(path);
  const rules = MODULES[module];
  if (!rules)
    return complain(
      `src/${module} is not a module of the import table`,
      'add it to docs/architecture.md, to FLOORS, and to MODULES with what it may import',
    );
  const { specifier } = one;
  if (specifier.startsWith('node:')) return;
  if (specifier.startsWith('.')) {
    const target = posix.normalize(posix.join(posix.dirname(path), specifier));
    if (path === 'src/foundation/version.ts' && target === 'package.json') return;
    if (!target.startsWith('src/')) return complain('it leads out of src', 'src stands alone; pass the value in');
    const other = moduleOf(target);
    if (other === module) return;
    if (rules.modules.includes(other) && NAMED_BY_PATH.includes(other)) return;
    if (rules.starts?.includes(other))
      return one.isUrl
        ? undefined
        : complain(`${module} starts ${other} and imports nothing of it`, 'name its program by new URL(…)');
    if (rules.modules.includes(other))
      return complain(`it reaches into ${other}`, `import its public API: '#${other}'`);
    return complain(`${module} may not know ${other}`, allowedText(module, rules));
  }
  if (specifier.startsWith('#')) {
    const other = specifier.slice(1);
    if (other.split('/')[0] === module)
      return complain('a module does not import its own public API', 'import the file relatively');
    const knows = rules.modules.includes(other) || (other === 'billing/amounts' && rules.modules.includes('billing'));
    if (!knows) complain(`${module} may not know ${other}`, allowedText(module, rules));
    return;
  }
  const name = packageOf(specifier);
  if (!allowsPackage(rules.packages, name)) complain(`${module} may not use ${name}`, allowedText(module, rules));
}

function allowedText(module: string, rules: Module): string {
  const allowed = [...rules.modules.map((other) => `#${other}`), ...rules.packages];
  return `${module} may import ${allowed.length ? allowed.join(', ') : 'nothing but node: modules'} and itself`;
}

/** Rules on words rather than on imports: who reads the environment, who mounts billing. */
function checkWords(file: SourceFile): Finding[] {
  const { code } = mask(file.text);
  const findings: Finding[] = [];
  if (!matches(READS_ENVIRONMENT, file.path))
    for (const match of code.matchAll(/\bprocess\s*\.\s*(?:env|argv)\b/g))
      findings.push(
        `${file.path}:${lineOf(code, match.index)} reads ${match[0]}: only main.ts, cli, the demo program and config/file.ts do; take the value as an argument`,
      );
  if (!matches(MOUNTS_BILLING, file.path))
    for (const match of code.matchAll(/\bcreateBill\b/g))
      findings.push(
        `${file.path}:${lineOf(code, match.index)} names createBill: billing is mounted once, in src/gateway/call/billing.ts`,
      );
  return findings;
}
