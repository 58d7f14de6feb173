/**
 * The floors of src/, the lowest first, and their modules, the lowest first. A floor imports only floors above it in
 * this table. A module is a folder of its floor; one with the floor's own name is all of the floor that is in no other.
 */
export const FLOORS: Readonly<Record<string, readonly string[]>> = {
  foundation: ['version', 'errors', 'maps', 'security', 'wire', 'store'],
  billing: ['billing', 'chains', 'analytics'],
  server: ['config', 'accounts', 'limits', 'http', 'catalog', 'payments'],
  gateway: ['call', 'json-rpc', 'bridge', 'auth', 'network', 'authorization', 'files', 'tasks', 'webhooks'],
  openai: ['kept-responses', 'batch-jobs', 'openai'],
  mcp: ['mcp'],
  a2a: ['a2a'],
  media: ['media'],
  providers: ['ai-sdk', 'list-prices', 'proxy'],
  console: ['observe', 'pages', 'rpc'],
  program: ['demo', 'app', 'cli'],
};

const OF_ONE_FILE: ReadonlySet<string> = new Set(['version', 'errors', 'maps']);

function pathOf(floor: string, module: string): string {
  if (module === floor) return `src/${floor}`;
  return `src/${floor}/${module}${OF_ONE_FILE.has(module) ? '.ts' : ''}`;
}

/** Where each module is, such as `src/gateway/call`. */
export const PATHS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    Object.entries(FLOORS).flatMap(([floor, modules]) => modules.map((module) => [module, pathOf(floor, module)])),
  ),
  main: 'src/main.ts',
};

/** The floor of a module; undefined for the program's first file, which is below all. */
export const floorOf = (module: string): string | undefined =>
  Object.keys(FLOORS).find((floor) => FLOORS[floor]!.includes(module));

const LONGEST_FIRST = Object.entries(PATHS).toSorted(([, one], [, other]) => other.length - one.length);

/** The module of a path below src/; its folder, if no module has it. */
export function moduleOf(path: string): string {
  const found = LONGEST_FIRST.find(([, at]) => path === at || path.startsWith(`${at}/`));
  return found?.[0] ?? path.split('/')[1]!;
}
