import { GatewayError, printable } from '#wire';
import { nearestHint, type Catalog, type Resolved } from '#gateway';

/**
 * The service of a name. `param` is the parameter that holds the name. Throws GatewayError `invalid_model` for an
 * unknown name, because A2A has a code for it that differs from the code of an unknown task.
 */
export function resolveAgent(catalog: Pick<Catalog, 'resolve'>, name: string, param?: string): Resolved {
  try {
    return catalog.resolve(name, 'agent');
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'not_found') throw unknownAgent(name, [], param);
    throw error;
  }
}

/** The error for an unknown name. It suggests the nearest of `names`. */
export function unknownAgent(name: string, names: Iterable<string> = [], param?: string): GatewayError {
  const hint = nearestHint(name, names) || 'GET /api/v1/agents lists all agents';
  return new GatewayError('invalid_model', `${kindOf(name)} not found: ${printable(name)}. ${hint}`, { param });
}

/** The primitive that the prefix of a name means. Models and tools can be called as agents here. */
function kindOf(name: string): string {
  if (name.startsWith('model/')) return 'Model';
  return name.startsWith('mcp/') ? 'Tool' : 'Agent';
}
