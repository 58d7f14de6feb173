/** The path of the tunnel, below the router's address. */
export const TUNNEL_PATH = '/api/v1/provider/tunnel';
