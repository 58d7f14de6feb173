import { GatewayError, printable, type Catalog, type Resolved } from '#gateway';

/** The service of a name. Throws GatewayError `invalid_model`, which A2A has a code for that is not that of an unknown task. */
export function resolveAgent(catalog: Pick<Catalog, 'resolve'>, name: string): Resolved {
  try {
    return catalog.resolve(name, 'agent');
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'not_found') throw unknownAgent(name);
    throw error;
  }
}

export const unknownAgent = (name: string) =>
  new GatewayError('invalid_model', `Agent not found: ${printable(name)}. GET /api/v1/agents lists those that there are`);
