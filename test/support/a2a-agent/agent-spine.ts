import { dialIn, type DialledIn } from '../dial-in.ts';
import { findFreePort } from '../free-port.ts';
import { startSpine, UNHURRIED, type Spine, type SpineOptions } from '../spine.ts';
import type { Agent, AgentOptions } from './agent.ts';
import { startAgent } from './start-agent.ts';

/** A gateway in this process, with agents behind the tunnels of providers. */
export interface AgentSpine {
  readonly spine: Spine;
  /** Somebody else with an account and a key. */
  readonly stranger: { readonly account: string; readonly key: string };
  /** Starts an agent and a provider's proxy that offers it. Resolves when calls can come. */
  serve(options?: AgentOptions, offer?: Partial<AgentOffer>): Promise<ServedAgent>;
  /** Ends all of it. */
  close(): Promise<void>;
}

export interface ServedAgent {
  readonly agent: Agent;
  readonly proxy: DialledIn;
  /** Such as `fixture/agent-1`. */
  readonly service: string;
  /** `<gateway>/a2a/<service>`, without a slash at the end. */
  readonly url: string;
}

/** What a provider's file says of an agent. */
export interface AgentOffer {
  readonly name: string;
  readonly endpoint: string;
  /** TOML of `[agents.pricing]`; default 0.001 USD a message. */
  readonly pricing: string;
  readonly provider: string;
  readonly apiKey: string;
}

/** An `[[agents]]` block of a provider's or a gateway's file. */
export function agentBlock({
  name,
  endpoint,
  pricing = 'per_call = 0.001',
  provider = 'Fixture',
  apiKey,
}: Partial<AgentOffer>): string {
  return `
[[agents]]
name = "${name}"
display_name = "${provider}: Agent"
provider_name = "${provider}"
endpoint = "${endpoint}"
${apiKey === undefined ? '' : `api_key = "${apiKey}"`}
[agents.pricing]
${pricing}
`;
}

/**
 * Starts the gateway; `toml` goes after limits that no test meets, or has a `[limits]` of its own. Clients'
 * webhooks may be on this machine.
 */
export async function startAgentSpine(toml = '', options: Omit<SpineOptions, 'toml'> = {}): Promise<AgentSpine> {
  // A gateway that knows its own address is told by agents of their tasks, and need not look at them.
  const port = options.port ?? (await findFreePort());
  const own = toml.includes('[server]') ? '' : `[server]\npublic_url = "http://127.0.0.1:${port}"\n`;
  const limits = toml.includes('[limits]') ? '' : UNHURRIED;
  const spine = await startSpine({
    ...options,
    port,
    toml: `${limits}\n[webhooks]\nallow_private = true\n${own}${toml}`,
  });
  const ends: (() => Promise<void> | void)[] = [];
  let served = 0;
  return {
    spine,
    stranger: await spine.tenant('stranger', '10'),
    async serve(agentOptions = {}, offer = {}) {
      served += 1;
      const service = offer.name ?? `fixture/agent-${served}`;
      const agent = await startAgent(agentOptions);
      ends.push(() => agent.close());
      const services = agentBlock({
        provider: `Fixture ${served}`,
        ...offer,
        name: service,
        endpoint: offer.endpoint ?? agent.url,
      });
      const proxy = await dialIn({ router: spine.origin, services });
      ends.push(() => proxy.kill());
      return { agent, proxy, service, url: `${spine.origin}/a2a/${service}` };
    },
    async close() {
      for (const end of ends.toReversed()) {
        // oxlint-disable-next-line no-await-in-loop -- each proxy goes before its agent
        await end();
      }
      await spine.stop();
    },
  };
}
