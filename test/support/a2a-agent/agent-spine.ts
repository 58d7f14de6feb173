import { dialIn, type DialledIn } from '../dial-in.ts';
import { findFreePort } from '../free-port.ts';
import { startSpine, UNHURRIED, type Spine, type SpineOptions } from '../spine.ts';
import type { Agent, AgentOptions } from './agent.ts';
import { startAgent } from './start-agent.ts';

/** A gateway in this process with agents, which are connected through providers' tunnels. */
export interface AgentSpine {
  readonly spine: Spine;
  /** A second account with its own key. */
  readonly stranger: { readonly account: string; readonly key: string };
  /** Starts an agent and a provider's proxy that offers it. Resolves when it can be called. */
  serve(options?: AgentOptions, offer?: Partial<AgentOffer>): Promise<ServedAgent>;
  /** Stops everything. */
  close(): Promise<void>;
}

export interface ServedAgent {
  readonly agent: Agent;
  readonly proxy: DialledIn;
  /** The service's name, such as `fixture-1/agent`. */
  readonly service: string;
  /** `<gateway>/a2a/<service>`, without a trailing slash. */
  readonly url: string;
}

/** The facts about an agent in a provider's file. */
export interface AgentOffer {
  readonly name: string;
  readonly endpoint: string;
  /** TOML of `[agents.pricing]`. Default: 0.001 USD per message. */
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
 * Starts the gateway. `toml` is appended to rate limits that no test reaches, or has its own `[limits]`. Clients'
 * webhooks may be on this machine.
 */
export async function startAgentSpine(toml = '', options: Omit<SpineOptions, 'toml'> = {}): Promise<AgentSpine> {
  // If a gateway knows its own address, agents push updates of their tasks to it, so it doesn't poll them.
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
      const service = offer.name ?? `fixture-${served}/agent`;
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
        await end();
      }
      await spine.stop();
    },
  };
}
