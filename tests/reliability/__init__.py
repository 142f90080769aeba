"""The reliability lab: crashes, power cuts, failing disks, hostile clients, simulated histories, soaks."""
