// The parts of the deep run (`npm run test:deep`). A test file belongs to the first part with a word that occurs in the
// file's path.
import { readdirSync } from 'node:fs';
import { join, sep } from 'node:path';

/** Words of paths, by the name of the part. The parts run in this order. */
const PARTS = {
  soak: ['/soak.test.ts', 'killed', 'flapping', 'five-hundred', 'two-hundred', 'freezes', 'vanish', 'races'],
  schemathesis: ['test/clients/schemathesis/'],
  clients: [
    'test/clients/',
    'test/mcp/clients/',
    'test/openai/clients/',
    'document-is-linted',
    'test/mcp/conformance/',
    'in-a-browser',
    '-sdk.test.ts',
  ],
  money: ['test/billing/', 'test/cost-caps/', 'test/foundation/store/'],
  chat: ['test/openai/', 'test/spine/', 'test/fairness/', 'test/gateway/bridge/'],
  mcp: ['test/mcp/'],
  a2a: ['test/a2a/'],
  network: ['test/gateway/network/through-tunnels/', 'test/providers/proxy/', 'test/cluster/', 'test/peers/'],
  gateway: ['test/gateway/'],
  commands: [
    'test/program/cli/',
    'test/examples/',
    'test/program/demo/',
    'test/docs/',
    'test/bench/',
    'test/support-tests/',
  ],
  rest: ['test/'],
};

/** This part has no test files. It runs the commands of the README on a machine that bare-machine.mjs builds. */
export const BARE = 'bare';

const WITH_FILES = Object.keys(PARTS);
export const PART_NAMES = [...WITH_FILES, BARE];

/** Returns the parts of a checkout that have test files: `{ name, files }`. Each file is in exactly one part. */
export function deepParts(checkout) {
  const files = readdirSync(join(checkout, 'test'), { recursive: true })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => `test/${file.split(sep).join('/')}`)
    .sort();
  const partOf = (file) => WITH_FILES.find((name) => PARTS[name].some((word) => file.includes(word)));
  return WITH_FILES.map((name) => ({ name, files: files.filter((file) => partOf(file) === name) })).filter(
    ({ files: own }) => own.length > 0,
  );
}
