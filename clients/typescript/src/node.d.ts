// What this library uses of node, declared here so that it is built without any package.

declare module "node:crypto" {
  interface Hmac {
    update(data: string | Uint8Array): Hmac;
    digest(): Uint8Array;
  }
  export function createHmac(algorithm: string, key: Uint8Array): Hmac;
  export function randomUUID(): string;
  export function timingSafeEqual(one: Uint8Array, other: Uint8Array): boolean;
}

declare module "node:http" {
  export interface Answer {
    statusCode?: number;
    headers: Record<string, string | string[] | undefined>;
    on(event: "data", listener: (piece: Uint8Array) => void): Answer;
    on(event: "end" | "close", listener: () => void): Answer;
    on(event: "error", listener: (error: Error) => void): Answer;
    resume(): void;
    destroy(): void;
  }
  interface Asking {
    on(event: "error", listener: (error: Error) => void): Asking;
    end(body?: string): void;
  }
  interface Options {
    socketPath: string;
    path: string;
    method: string;
    headers: Record<string, string>;
    signal?: AbortSignal;
  }
  export function request(options: Options, answered: (answer: Answer) => void): Asking;
}

declare const process: { env: Record<string, string | undefined> } | undefined;
