import { GatewayError, printable } from '#wire';
import { nearestHint, type Catalog, type Resolved } from '#gateway';

/**
 * The service of a name, which stands in `param`. Throws GatewayError `invalid_model`, which A2A has a code for
 * that is not that of an unknown task.
 */
export function resolveAgent(catalog: Pick<Catalog, 'resolve'>, name: string, param?: string): Resolved {
  try {
    return catalog.resolve(name, 'agent');
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'not_found') throw unknownAgent(name, [], param);
    throw error;
  }
}

/** `names`: what there is, to name the nearest. */
export function unknownAgent(name: string, names: Iterable<string> = [], param?: string): GatewayError {
  const hint = nearestHint(name, names) || 'GET /api/v1/agents lists all agents';
  return new GatewayError('invalid_model', `${kindOf(name)} not found: ${printable(name)}. ${hint}`, { param });
}

/** The primitive that a name has by its prefix: models and tools are agents here as well. */
function kindOf(name: string): string {
  if (name.startsWith('model/')) return 'Model';
  return name.startsWith('mcp/') ? 'Tool' : 'Agent';
}
