export { SECRET_KEY } from './adapter.ts';
export {
  type AuthorizationServer,
  type SignInRequest,
  createAuthorizationServer,
  createTokenLookup,
} from './authorization-server.ts';
export { authorizationRoutes } from './authorization-routes.ts';
export { GRANT_DAYS_MAX } from './open-provider.ts';
export { type StateStore, createStateStore } from './state-store.ts';
