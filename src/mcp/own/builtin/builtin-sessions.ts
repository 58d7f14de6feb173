import {
  createKeptSessions,
  type KeptSession,
  type KeptSessions,
  type KeptSessionsDeps,
} from '../../sessions/kept-sessions.ts';

/** The session of a legacy client with an agent or a model. */
export interface BuiltinSession extends KeptSession {
  /** The full name of the agent or model, such as `a2a/weather`. */
  readonly service: string;
}

export const createBuiltinSessions = (deps: KeptSessionsDeps): KeptSessions<BuiltinSession> =>
  createKeptSessions<BuiltinSession>({
    ...deps,
    kind: 'mcp-front',
    // The name alone is what older gateways store and read.
    toState: ({ service, within = null }) => (within === null ? service : JSON.stringify([service, within])),
    fromState({ id, account, state }) {
      const [service, within] = state.startsWith('[') ? (JSON.parse(state) as [string, string]) : [state, null];
      return { id, account, within, service };
    },
  });
