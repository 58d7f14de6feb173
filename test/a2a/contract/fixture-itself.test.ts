import { startAgent, type AgentVersion } from '../../support/a2a-agent/index.ts';
import { contractSuite, type Target } from './contract-suite.ts';
import { REQUIREMENTS } from './manifest.ts';

/**
 * The agents of the tests, without anything before them: shows that the checks can pass, and where the SDK does not
 * do what the specification says.
 */
function direct(name: string, speaks: AgentVersion, target: Omit<Target, 'name' | 'open'>): void {
  contractSuite({
    name,
    ...target,
    deviates: Object.fromEntries(
      REQUIREMENTS.flatMap(({ id, sdkDeviates }) =>
        sdkDeviates === undefined || !concerns(id, target) ? [] : [[id, sdkDeviates]],
      ),
    ),
    async open(options) {
      const agent = await startAgent({ version: speaks, ...options });
      return { url: agent.url, headers: {}, agent, close: () => agent.close() };
    },
  });
}

/** The SDK's REST routes check what its JSON-RPC ones do not, and its 0.3 parts are another code. */
function concerns(id: string, { version, binding }: Omit<Target, 'name' | 'open'>): boolean {
  if (version === '0.3') return false;
  return binding === 'JSONRPC' || ['SEND-12', 'VER-03', 'VER-04'].includes(id);
}

direct('an agent of 1.0', '1.0', { version: '1.0', binding: 'JSONRPC' });
direct('an agent of 1.0', '1.0', { version: '1.0', binding: 'HTTP+JSON' });
direct('an agent of 0.3', '0.3', { version: '0.3', binding: 'JSONRPC' });
direct('an agent of both', 'both', { version: '1.0', binding: 'JSONRPC' });
direct('an agent of both', 'both', { version: '0.3', binding: 'JSONRPC' });
