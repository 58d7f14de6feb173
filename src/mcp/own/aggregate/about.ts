import { MODERN } from '../../wire/revisions.ts';
import { TASKS } from '../../tasks/extension.ts';
import { OWN } from './own-tools.ts';
import { ownResult, type ServerInfo } from '../result-text.ts';

const CAPABILITIES = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  completions: {},
} as const;

const INSTRUCTIONS = `This is a gateway to many MCP servers ("services").
Names: a tool or prompt is <service>__<name>, a resource is <service>+<uri> or ui://<service>/…
Prices: every tool says what it costs in _meta["tollgate/price"] (USD per call; "0" is free). Calls are charged to your account when they succeed.
Definitions are their provider's words; _meta["tollgate/definition"] says by version and changed_at when they have changed.
Where there are too many tools to list, ${OWN.find} and ${OWN.call} are listed instead: find what you need by words, then call it. ${OWN.find} is always there, and free.
Agents and language models can be asked as well, by ${OWN.askAgent} and ${OWN.askModel}, where these are listed; ${OWN.find} finds them.`;

/** The result of `server/discover`, as JSON text. */
export function discoverResult(info: ServerInfo): string {
  return ownResult(
    {
      supportedVersions: JSON.stringify([MODERN]),
      capabilities: JSON.stringify({ ...CAPABILITIES, extensions: { [TASKS]: {} } }),
      instructions: JSON.stringify(INSTRUCTIONS),
    },
    info,
    true,
    true,
  );
}

/** The result of `initialize` in a legacy revision, as JSON text. */
export function initializeResult(info: ServerInfo, revision: string): string {
  return JSON.stringify({
    protocolVersion: revision,
    capabilities: { ...CAPABILITIES, logging: {} },
    serverInfo: info,
    instructions: INSTRUCTIONS,
  });
}
