import type { Schemas } from './types.ts';

/** A service as a row of the marketplace. */
export type Service = Schemas['ServiceRow'];
export type ServiceStatus = Service['status'];

/** Whether at least one of its providers can be called now. */
export const isCallable = ({ status }: Pick<Service, 'status'>): boolean =>
  status === 'healthy' || status === 'untried' || status === 'degraded' || status === 'failing';
