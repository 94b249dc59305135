"""A demand series → every model asked at every origin → measures beside naive and ceiling, and a champion."""
