import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Threads need a cross-origin isolated page. The server of the built page sends the same headers.
const headers = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

export default defineConfig({ plugins: [react()], server: { headers }, preview: { headers } });
