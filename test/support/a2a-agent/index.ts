export { agentBlock, startAgentSpine, type AgentOffer, type AgentSpine, type ServedAgent } from './agent-spine.ts';
export type {
  Agent,
  AgentBinding,
  AgentOptions,
  AgentVersion,
  EndState,
  RawAgent,
  RawExchange,
  ReceivedRequest,
} from './agent.ts';
export { startAgent } from './start-agent.ts';
export { startCardedAgent, startRawAgent } from './raw-agent.ts';
