/**
 * The agent card of the demo's croupier. Clients of A2A 0.3 and of 1.0 can both read it. `url` is the address for
 * JSON-RPC posts.
 */
export function croupierCard(url: string): object {
  return {
    name: 'Demo: Croupier',
    description:
      'Rolls dice and comments on them. Given a run token, it has demo/toolbox roll and asks demo/sage for the comment.',
    version: '1.0.0',
    supportedInterfaces: ['1.0', '0.3'].map((protocolVersion) => ({
      url,
      protocolBinding: 'JSONRPC',
      protocolVersion,
    })),
    protocolVersion: '0.3.0',
    url,
    preferredTransport: 'JSONRPC',
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain', 'application/json'],
    skills: [
      {
        id: 'roll',
        name: 'Roll dice',
        description:
          'Rolls dice as players write them, and says how lucky that was. Asks which dice where none are named.',
        tags: ['dice', 'demo'],
        examples: ['Roll 2d6', 'd20+3, please'],
      },
    ],
  };
}
